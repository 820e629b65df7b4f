"""Jobs, in the order of the attention that they need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from draftsman.entities import cells
from draftsman.entities.jobs import DEAD_LETTERS, JOBS
from draftsman.ids import job_name
from draftsman.jobs.job import FAILURES, TERMINAL, WAITING, Status
from draftsman.jobs.job_summary import JobFilters, JobPage, JobSummary
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import NOTHING, Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import MAX_PAGES, Query, Resource, Rows

LABELS: Final = ("needs a person", "running", "waits", "failed", "finished")
"""The groups, in their order."""
STATUSES: Final = (
    WAITING,
    frozenset({Status.RUNNING, Status.CLAIMED}),
    frozenset({Status.QUEUED, Status.RESUMED, Status.SCHEDULED, Status.RETRYING}),
    FAILURES,
    TERMINAL,
)
"""The statuses of each group; failed jobs that need no person are among the finished jobs."""


def attention(row: JobSummary) -> str:
    """Return the group of a job by the attention that it needs."""
    if row.status in FAILURES:
        return LABELS[3 if row.failure_open else 4]
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
        filters["failures"] = STATUSES[nth] is FAILURES
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


PAUSED: Final = "paused"
"""Filter value of jobs that are paused, in whatever status."""


class JobsResource(Resource[JobSummary]):
    """All jobs."""

    number_key = "1"
    help = "All jobs: those that need a person first, then those that run, wait, failed, finished."
    statuses = (*map(str, Status), PAUSED)
    fields = ("status", "repo", "by", "agent", "tag", "source", "group", "job", "age")
    has_jobs = True
    has_questions = True
    has_queued_jobs = True
    default_group = "attention"
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {
        "attention": attention,
        "repository": lambda row: (row.request and row.request.repo_name) or "",
        "person": lambda row: row.invoker_id,
        "status": lambda row: cells.job_status(row.status).text,
    }
    group_order: ClassVar[Mapping[str, Sequence[str]]] = {"attention": LABELS}
    entity = JOBS
    hint = "press n to submit a job, or in a shell: draftsman init, draftsman submit"

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        job_filter = query.filter
        since = query.now - timedelta(seconds=job_filter.newer) if job_filter.newer else None
        if query.group == self.default_group and _is_ordered(job_filter):
            wanted = statuses(job_filter) or list(Status)
            ranked = await page(rt, wanted, query.before, since, query.limit)
            return replace(ranked, items=await rt.read_model.with_figures(ranked.items))
        # both a status and `paused`: the filter of the table selects the rows
        is_mixed = PAUSED in job_filter.statuses and len(job_filter.statuses) > 1
        jobs_page = await rt.read_model.page(
            statuses=None if is_mixed else statuses(job_filter),
            paused=job_filter.statuses == (PAUSED,),
            agent=job_filter.agent,
            repo=job_filter.repo,
            group=job_filter.group,
            numbers=query.jobs,
            tags=() if job_filter.tag is None else (job_filter.tag,),
            since=since,
            before=query.before,
            limit=query.limit,
        )
        jobs = await rt.read_model.with_figures(jobs_page.jobs)
        if jobs_page.scanned_to is not None:
            return Rows(
                jobs,
                jobs_page.scanned_to,
                f"searched back to {job_name(jobs_page.scanned_to)}",
            )
        is_full = len(jobs_page.jobs) >= query.limit
        return Rows(jobs, jobs_page.jobs[-1].number if is_full else None)

    def key(self, row: JobSummary) -> str:
        return job_name(row.number)

    def job(self, row: JobSummary) -> int:
        return row.number

    def invokers(self, row: JobSummary) -> Sequence[str]:
        return (row.invoker_id,)

    def item(self, row: JobSummary) -> tuple[str, str | None]:
        return "questions" if row.status in WAITING else "timeline", None

    def filter_fields(self, row: JobSummary) -> FilterFields:
        asked = row.request
        agent = (asked and asked.agent) or ""
        repo = (asked and asked.repo) or ""
        name = (asked and asked.repo_name) or ""
        texts = (self.key(row), row.title, row.type, agent, name, row.last_error)
        return FilterFields(
            " ".join(filter(None, texts)),
            status=row.status,
            repo=repo,
            by=row.invoker_id,
            agent=agent,
            tags=tuple(name for tag in row.tags for name in (tag, tag.partition("=")[0])),
            at=row.created_at,
            source=row.source,
            repo_host=(asked and asked.repo_host) or "",
            second_status=PAUSED if row.job_paused else "",
        )


def _is_ordered(job_filter: Filter) -> bool:
    """Return whether jobs are read in the order of their groups: an index has the filter.

    Otherwise the newest jobs are searched, and the loaded rows are grouped.
    """
    return (
        job_filter
        == replace(
            NOTHING,
            statuses=job_filter.statuses,
            newer=job_filter.newer,
            older=job_filter.older,
        )
        and PAUSED not in job_filter.statuses
    )


def statuses(job_filter: Filter) -> list[Status] | None:
    """Return the statuses of a filter without `paused`, None for all; raises UsageError."""
    names = JobsResource().resolve(job_filter).statuses
    return [Status(name) for name in names if name != PAUSED] or None


class DeadLettersResource(JobsResource):
    """Jobs that are not retried automatically any more."""

    name = "dead"
    number_key = "3"
    help = "Jobs that exhausted their attempts."
    statuses = (str(Status.DEAD_LETTER),)
    has_questions = False
    has_queued_jobs = False
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {"attention": attention}
    entity = DEAD_LETTERS
    hint = ""

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        job_filter = replace(query.filter, statuses=(str(Status.DEAD_LETTER),))
        return await super().read(rt, replace(query, filter=job_filter))
