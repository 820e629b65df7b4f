"""Jobs, in the order of the attention that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from draftsman.formats import times
from draftsman.formats.amounts import format_money
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.job_summary import JobSummary
from draftsman.jobs.retries import ErrorClass
from draftsman.text import first_line, humanize
from draftsman_tui.dashboard.tables.filter import NOTHING, Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import MAX_PAGES, Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column
from draftsman_tui.entities.queues import hold_text
from draftsman_tui.terminal.output import one_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from draftsman.jobs.job_summary import JobFilters, JobPage
    from draftsman.runtime import Runtime


# Cost, changes and progress of a job in a row.


SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def changes_text(row: JobSummary) -> str:
    """Return the changed lines of the newest patch: `+55 -3`; "" if there are none."""
    figures = row.figures
    if figures is None or not (figures.added or figures.removed):
        return ""
    return f"+{figures.added or 0} -{figures.removed or 0}"


def cost_text(row: JobSummary) -> str:
    """Return the cost in dollars; "" for none."""
    dollars = cost(row)
    return format_money(dollars, cents=True) if dollars else ""


def live_text(row: JobSummary, now: datetime) -> str:
    """Return a spinner, the time and the progress of a running job."""
    frame = SPINNER[int(now.timestamp()) % len(SPINNER)]
    elapsed = times.span((now - (row.started_at or now)).total_seconds())
    progress = row.figures.progress if row.figures else ""
    return " ".join(filter(None, (frame, elapsed, one_line(progress))))


def asked_text(row: JobSummary) -> str:
    """Return the question or action of a waiting job: `push draftsman/D-3`; "" if unknown."""
    return first_line(row.figures.asks, 80) if row.figures else ""


def cost(row: JobSummary) -> float:
    """Return the cost in dollars; 0 if it is unknown."""
    return (row.figures.cost_usd or 0.0) if row.figures else 0.0


def changed_lines(row: JobSummary) -> int:
    """Return the number of changed lines."""
    return (row.figures.added or 0) + (row.figures.removed or 0) if row.figures else 0


# Jobs in the order of the attention that they need: those that wait for a person first.


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


PAUSED: Final = "paused"
"""Filter value of jobs that are paused, in whatever status."""


@table_view
class JobsResource(Resource[JobSummary]):
    """All jobs."""

    name = "jobs"
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
        "repository": lambda row: row.repo_name or "",
        "person": lambda row: row.invoker_id,
        "status": lambda row: cells.job_status(row.status).text,
    }
    group_order: ClassVar[Mapping[str, Sequence[str]]] = {"attention": LABELS}
    empty = "No jobs yet. Press n to submit a job, or in a shell: draftsman demo, draftsman submit"
    columns = (
        Column[JobSummary]("JOB", 9, most=9, order=lambda job: job.number),
        Column[JobSummary]("STATUS", 11, most=11, order=lambda job: job.status),
        Column[JobSummary]("TITLE", 0, order=lambda job: (job.ticket_title or job.type).casefold()),
        Column[JobSummary](
            "REPO", 14, most=24, from_width=84, order=lambda job: job.repo_name or ""
        ),
        Column[JobSummary]("AGENT", 12, most=20, from_width=120, order=lambda job: job.agent or ""),
        Column[JobSummary]("BY", 12, most=20, from_width=150, order=lambda job: job.invoker_id),
        Column[JobSummary]("RUNS", 5, right=True, from_width=160, order=lambda job: job.run_count),
        Column[JobSummary](
            "CHANGES", 9, most=14, right=True, from_width=120, order=changed_lines, optional=True
        ),
        Column[JobSummary]("COST", 6, most=9, right=True, from_width=84, order=cost, optional=True),
        Column[JobSummary]("AGE", 6, right=True, order=lambda job: job.created_at),
        Column[JobSummary]("NEXT", 20, most=60),
    )

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

    def cells(self, row: JobSummary, now: datetime) -> Sequence[Cell]:
        return (
            Cell(self.key(row), "key"),
            Cell(humanize(row.status), "dim")
            if row.retried_as is not None
            else cells.job_status(row.status, row.error_class, paused=row.shown_as_paused),
            cells.text(row.ticket_title or row.type),
            cells.text(row.repo_name),
            cells.text(row.agent),
            cells.text(row.invoker_id),
            Cell(str(row.run_count)),
            Cell(changes_text(row), "dim"),
            Cell(cost_text(row), "dim"),
            cells.age(row.created_at, now),
            _next(row, now),
        )

    def filter_fields(self, row: JobSummary) -> FilterFields:
        texts = (
            self.key(row),
            row.ticket_title,
            row.type,
            row.agent,
            row.repo_name,
            row.last_error,
        )
        repo = f"{row.repo_owner}/{row.repo_name}" if row.repo_owner else row.repo_name or ""
        return FilterFields(
            " ".join(filter(None, texts)),
            status=row.status,
            repo=repo,
            by=row.invoker_id,
            agent=row.agent or "",
            tags=tuple(name for tag in row.tags for name in (tag, tag.partition("=")[0])),
            at=row.created_at,
            source=row.source,
            repo_host=row.repo_host or "",
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


def _next(row: JobSummary, now: datetime) -> Cell:
    if row.job_paused:
        return cells.text(hold_text(row), "warns")
    match row.status:
        case Status.RUNNING:
            return cells.text(live_text(row, now), "busy")
        case Status.WAITING_FOR_INPUT | Status.WAITING_FOR_APPROVAL if text := asked_text(row):
            return cells.text(text)
        case Status.WAITING_FOR_INPUT:
            return Cell("answer", "asks")
        case Status.WAITING_FOR_APPROVAL:
            return Cell("approve or deny", "asks")
        case Status.QUEUED | Status.RESUMED | Status.SCHEDULED | Status.RETRYING if row.hold:
            return cells.text(hold_text(row), "warns")
        case Status.RETRYING | Status.SCHEDULED:
            reason = row.sleep_reason or row.last_error or ""
            return cells.text(f"{times.due(row.due_in)} {first_line(reason, 60)}")
        case Status.FAILED | Status.DEAD_LETTER if row.retried_as is not None:
            error = first_line(row.last_error or "", 80)
            return cells.text(f"retried as {job_name(row.retried_as)}: {error}", "dim")
        case Status.FAILED | Status.DEAD_LETTER:
            role = cells.job_status(row.status, row.error_class).role
            return cells.text(first_line(row.last_error or "", 80), role)
        case _:
            return Cell("")


# Dead letters: jobs that exhausted their attempts.


@table_view
class DeadLettersResource(JobsResource):
    """Jobs that are not retried automatically any more."""

    name = "dead"
    number_key = "3"
    help = "Jobs that exhausted their attempts."
    statuses = (str(Status.DEAD_LETTER),)
    has_questions = False
    has_queued_jobs = False
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {"attention": attention}
    empty = "No dead letters."

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        job_filter = replace(query.filter, statuses=(str(Status.DEAD_LETTER),))
        return await super().read(rt, replace(query, filter=job_filter))
