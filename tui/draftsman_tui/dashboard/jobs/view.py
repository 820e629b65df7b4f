"""Jobs, in the order of the attention that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from draftsman.ids import job_name
from draftsman.jobs.error_classes import ErrorClass
from draftsman.jobs.job import WAITING, Status
from draftsman.jobs.read_models import JobSummary
from draftsman.text import first_line, humanize
from draftsman_tui.dashboard.jobs.attention_order import LABELS, attention, page
from draftsman_tui.dashboard.jobs.figures import (
    asked_text,
    changed_lines,
    changes_text,
    cost,
    cost_text,
    live_text,
)
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import NOTHING, Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows
from draftsman_tui.entities.queues import hold_text
from draftsman_tui.terminal import times

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

PAUSED: Final = "paused"
"""Filter value of jobs that are paused, in whatever status."""


class JobsResource(Resource[JobSummary]):
    """All jobs."""

    name = "jobs"
    help = "All jobs: those that need a person first, then those that run, wait, failed, finished."
    statuses = (*map(str, Status), PAUSED)
    fields = ("status", "repo", "by", "agent", "tag", "source", "group", "job", "age")
    default_group = "attention"
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {
        "attention": attention,
        "repository": lambda row: row.repo_name or "",
        "person": lambda row: row.invoker_id,
        "status": lambda row: cells.status(row.status).text,
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
            else cells.status(PAUSED if row.shown_as_paused else row.status, row.error_class),
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
        parts = (
            self.key(row),
            row.ticket_title,
            row.type,
            row.agent,
            row.repo_name,
            row.last_error,
        )
        repo = f"{row.repo_owner}/{row.repo_name}" if row.repo_owner else row.repo_name or ""
        return FilterFields(
            " ".join(filter(None, parts)),
            row.status,
            repo,
            row.invoker_id,
            row.agent or "",
            tuple(name for tag in row.tags for name in (tag, tag.partition("=")[0])),
            row.created_at,
            row.source,
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
            role = cells.DENIED if row.error_class == ErrorClass.DENIED else "bad"
            return cells.text(first_line(row.last_error or "", 80), role)
        case _:
            return Cell("")
