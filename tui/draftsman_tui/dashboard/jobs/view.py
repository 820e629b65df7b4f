"""Jobs, in the order of the attention that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Final

from draftsman.entities import cells
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Entity
from draftsman.entities.jobs import DEAD_LETTERS, JOBS, live_text, next_cell
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.ids import job_name
from draftsman.jobs.counts import WORDS, number_of
from draftsman.jobs.job import FAILURES, TERMINAL, WAITING, Status
from draftsman.jobs.job_summary import JobFilters, JobPage, JobSummary
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import PERIOD, Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import MAX_PAGES, Query, Resource, Rows

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LABELS: Final = ("needs a person", "running", "waits", "failures", "closed")
"""The groups, in their order."""
STATUSES: Final = (*(WORDS[word] for word in LABELS[:3]), FAILURES, TERMINAL)
"""The statuses of each group; failed jobs that need no person are among the finished jobs."""


def attention(row: JobSummary) -> str:
    """Return the group of a job by the attention that it needs."""
    if row.status in FAILURES:
        return LABELS[3 if row.failure_open else 4]
    return next(
        label for label, statuses in zip(LABELS, STATUSES, strict=True) if row.status in statuses
    )


async def page(
    rt: Runtime, filters: JobFilters, before: tuple[int, int] | None, limit: int
) -> Rows[JobSummary]:
    """Return a page of jobs in the order of their groups, in each that of `ReadModel.page`.

    `before` has the index of a group and a number. Each group is read through the index of
    statuses, so that a page costs its rows, however many jobs there are.
    """
    jobs: list[JobSummary] = []
    start, below = before or (0, None)
    statuses = filters.get("statuses") or list(Status)
    for nth in range(start, len(LABELS)):
        wanted = [status for status in Status if status in STATUSES[nth] and status in statuses]
        group_filters: JobFilters = {**filters, "statuses": wanted, "before": below}
        group_filters["failures"] = STATUSES[nth] is FAILURES
        for _ in range(MAX_PAGES if wanted else 0):
            group_filters["limit"] = limit - len(jobs)
            read = await rt.read_model.page(**group_filters)
            jobs += [job for job in read.jobs if attention(job) == LABELS[nth]]
            end = _end(read, group_filters["limit"])
            if end is None:
                break
            group_filters["before"] = end
            if len(jobs) >= limit:
                return Rows(jobs, (nth, end))
        else:
            if wanted:
                end = group_filters["before"]
                return Rows(jobs, (nth, end), f"searched back to {job_name(end or 0)}")
        below = None
    return Rows(jobs)


async def _newest(
    rt: Runtime, filters: JobFilters, before: int | None, limit: int
) -> Rows[JobSummary]:
    """Return a page of jobs, the newest first."""
    page_filters: JobFilters = {**filters, "before": before, "limit": limit}
    read = await rt.read_model.page(**page_filters)
    if read.scanned_to is not None:
        return Rows(read.jobs, read.scanned_to, f"searched back to {job_name(read.scanned_to)}")
    return Rows(read.jobs, _end(read, limit))


def _with_totals(
    rows: Rows[JobSummary], counts: Mapping[str, int] | None, failures: int | None, group: str
) -> Rows[JobSummary]:
    """Return a page with the numbers of all rows, from those by status and of open failures."""
    if counts is None:
        return rows
    totals: dict[str, int] = {}
    if group == "attention":
        totals = {word: number_of(word, counts) for word in LABELS[:3]}
        finished = number_of("finished", counts)
        if failures is not None:
            totals |= {"failures": failures}
        if failures is not None and finished < COUNT_LIMIT:
            totals |= {"closed": finished - failures}
    elif group == "status":
        totals = {cells.job_status(Status(name)).text: count for name, count in counts.items()}
    return replace(rows, total=sum(counts.values()), group_totals=totals)


def _end(read: JobPage, limit: int) -> int | None:
    """Return the number before which the next page of a group starts; None after the last."""
    return read.jobs[-1].number if len(read.jobs) >= limit else None


PAUSED: Final = "paused"
"""Filter value of jobs that are paused, in whatever status."""


def _next(row: JobSummary, now: datetime) -> Cell:
    """Return what is next for a job, with a spinner while it runs."""
    if row.status is not Status.RUNNING or row.job_paused or row.decision is not None:
        return next_cell(row, now)
    return cells.text(live_text(row, now, SPINNER[int(now.timestamp()) % len(SPINNER)]), "busy")


class JobsResource(Resource[JobSummary]):
    """All jobs."""

    name = "jobs"
    number_key = "1"
    help = "All jobs: those that need a person first, then running, waits, failures, closed."
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
    entity: ClassVar[Entity[Any]] = JOBS.with_cell("NEXT", _next)
    hint = "press n to submit a job, or in a shell: draftsman init, draftsman submit"

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        job_filter = query.filter
        since, until = job_filter.period(query.now)
        # both a status and `paused`: the filter of the table selects the rows
        is_mixed = PAUSED in job_filter.statuses and len(job_filter.statuses) > 1
        filters: JobFilters = {
            "statuses": None if is_mixed else statuses(job_filter),
            "paused": job_filter.statuses == (PAUSED,),
            "agent": job_filter.agent,
            "repo": job_filter.repo,
            "source": job_filter.source,
            "group": job_filter.group,
            "numbers": query.jobs,
            "tags": () if job_filter.tag is None else (job_filter.tag,),
            "since": since,
            "until": until,
        }
        if query.group == self.default_group and _is_ordered(job_filter):
            rows = await page(rt, filters, query.before, query.limit)
        else:
            rows = await _newest(rt, filters, query.before, query.limit)
        rows = replace(rows, items=await rt.read_model.with_figures(rows.items))
        if is_mixed or not _is_read_by_query(job_filter):
            return rows
        counts = await rt.read_model.counts(**filters)
        failures = None
        if query.group == self.default_group and job_filter.has_only():
            failures = sum((await rt.read_model.open_failures()).values())
        return _with_totals(rows, counts, failures, query.group)

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
    return job_filter.has_only("statuses", *PERIOD) and PAUSED not in job_filter.statuses


def _is_read_by_query(job_filter: Filter) -> bool:
    """Return whether no row of a page is left out by a term that only the table matches."""
    return job_filter.has_only("statuses", "agent", "repo", "source", "tag", *PERIOD)


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
        rows = await super().read(rt, replace(query, filter=job_filter))
        if not query.filter.has_only("statuses"):
            return rows
        failures = await rt.read_model.open_failures()
        return replace(rows, open=failures[Status.DEAD_LETTER])
