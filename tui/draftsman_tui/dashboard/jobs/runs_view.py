"""Runs of all jobs, newest job first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman.ids import run_name, worker_name
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.text import first_line
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, page, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class RunsResource(Resource[Run]):
    """Runs with their worker and result."""

    name = "runs"
    number_key = "4"
    help = "Runs of all jobs."
    statuses = tuple(map(str, RunStatus))
    fields = ("status", "job", "age")
    has_jobs = True
    empty = "No runs yet. In :jobs, press n to submit a job"
    columns = (
        Column[Run]("RUN", 11, most=11, order=lambda run: (run.job, run.ordinal)),
        Column[Run]("STATUS", 10, order=lambda run: run.status),
        Column[Run](
            "TITLE", 0, order=lambda run: run.title.casefold(), from_width=84, optional=True
        ),
        Column[Run]("REPO", 12, most=24, from_width=84, order=lambda run: run.repo, optional=True),
        Column[Run]("STARTED", 8, right=True, order=lambda run: run.started_at),
        Column[Run]("TOOK", 8, right=True, order=lambda run: _end(run) - run.started_at),
        Column[Run]("HEARTBEAT", 9, right=True, from_width=120, order=lambda run: run.heartbeat_at),
        Column[Run]("WORKER", 9, from_width=130),
        Column[Run]("EXIT", 4, right=True, from_width=130, optional=True),
        Column[Run]("ERROR", 20, most=60, optional=True),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Run]:
        if query.jobs is not None:
            return Rows(
                [run for job in query.jobs for run in (await rt.read_model.runs(job))[::-1]]
            )
        runs = await rt.read_model.latest_runs(query.before, query.limit)
        return page(runs, query.limit, lambda run: (run.job, run.ordinal))

    def key(self, row: Run) -> str:
        return run_name(row.job, row.ordinal)

    def job(self, row: Run) -> int:
        return row.job

    def item(self, row: Run) -> tuple[str, str | None]:
        return "runs", self.key(row)

    def cells(self, row: Run, now: datetime) -> Sequence[Cell]:
        duration = ((row.finished_at or now) - row.started_at).total_seconds()
        return (
            Cell(self.key(row), "key"),
            cells.status_cell(row.status, MEANINGS[row.status]),
            cells.text(row.title),
            cells.text(row.repo),
            cells.age(row.started_at, now),
            Cell(times.span(duration)),
            Cell("") if row.finished_at else cells.age(row.heartbeat_at, now),
            Cell(worker_name(row.worker_id), "dim"),
            Cell("" if row.exit_code is None else str(row.exit_code)),
            cells.text(first_line(row.error or "", 200), "bad"),
        )

    def filter_fields(self, row: Run) -> FilterFields:
        text = f"{self.key(row)} {row.worker_id} {row.error or ''} {row.title} {row.repo}"
        return FilterFields(text, str(row.status), at=row.started_at)


def _end(run: Run) -> datetime:
    return run.finished_at or run.heartbeat_at
