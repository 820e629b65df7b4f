"""Runs of all jobs, newest job first."""

from __future__ import annotations

from draftsman.entities.runs import RUNS
from draftsman.ids import run_name
from draftsman.jobs.runs.run import Run, RunStatus
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, page


class RunsResource(Resource[Run]):
    """Runs with their worker and result."""

    name = "runs"
    number_key = "4"
    help = "Runs of all jobs."
    statuses = tuple(map(str, RunStatus))
    fields = ("status", "job", "age")
    has_jobs = True
    entity = RUNS
    hint = "in :jobs, press n to submit a job"

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

    def filter_fields(self, row: Run) -> FilterFields:
        text = f"{self.key(row)} {row.worker_id} {row.error or ''} {row.title} {row.repo}"
        return FilterFields(text, str(row.status), at=row.started_at)
