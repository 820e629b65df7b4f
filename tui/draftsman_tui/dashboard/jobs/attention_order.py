"""Jobs in the order of the attention that they need: those that wait for a person first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.ids import job_name
from draftsman.jobs.error_classes import ErrorClass
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman_tui.dashboard.tables.resource import MAX_PAGES, Rows

if TYPE_CHECKING:
    from collections.abc import Collection

    from draftsman.jobs.read_models import JobFilters, JobPage, JobSummary
    from draftsman.runtime import Runtime

FAILED: Final = frozenset({Status.FAILED, Status.DEAD_LETTER})
LABELS: Final = ("needs a person", "running", "waits", "failed", "finished")
"""The groups, in their order."""
STATUSES: Final = (
    WAITING,
    frozenset({Status.RUNNING, Status.CLAIMED}),
    frozenset({Status.QUEUED, Status.RESUMED, Status.SCHEDULED, Status.RETRYING}),
    FAILED,
    TERMINAL,
)
"""The statuses of each group; failed jobs that need no person are among the finished jobs."""


def attention(row: JobSummary) -> str:
    """Return the group of a job by the attention that it needs."""
    if row.status in FAILED:
        is_open = row.retried_as is None and row.error_class != ErrorClass.DENIED
        return LABELS[3 if is_open else 4]
    return next(
        label for label, statuses in zip(LABELS, STATUSES, strict=True) if row.status in statuses
    )


async def page(
    rt: Runtime,
    statuses: Collection[Status],
    before: tuple[int, int] | None,
    since: datetime | None,
    limit: int,
) -> Rows[JobSummary]:
    """Return a page of jobs in the order of their groups, in each the newest first.

    `before` has the index of a group and a number. Each group is read through the index of
    statuses, so that a page costs its rows, however many jobs there are.
    """
    jobs: list[JobSummary] = []
    start, below = before or (0, None)
    for nth in range(start, len(LABELS)):
        wanted = [status for status in Status if status in STATUSES[nth] and status in statuses]
        filters: JobFilters = {"statuses": wanted, "since": since, "before": below}
        for _ in range(MAX_PAGES if wanted else 0):
            filters["limit"] = limit - len(jobs)
            read = await rt.read_model.page(**filters)
            jobs += [job for job in read.jobs if attention(job) == LABELS[nth]]
            end = _end(read, filters["limit"])
            if end is None:
                break
            filters["before"] = end
            if len(jobs) >= limit:
                return Rows(jobs, (nth, end))
        else:
            if wanted:
                end_name = job_name(filters["before"] or 0)
                return Rows(jobs, (nth, filters["before"]), f"searched back to {end_name}")
        below = None
    return Rows(jobs)


def _end(read: JobPage, limit: int) -> int | None:
    """Return the number before which the next page of a group starts; None after the last."""
    return read.jobs[-1].number if len(read.jobs) >= limit else None
