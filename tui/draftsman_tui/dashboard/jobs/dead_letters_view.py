"""Dead letters: jobs that exhausted their attempts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.jobs.job import Status
from draftsman.jobs.read_models import JobSummary
from draftsman_tui.dashboard.jobs.view import JobsResource
from draftsman_tui.dashboard.tables.resource import Query, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class DeadLettersResource(JobsResource):
    """Jobs that are not retried automatically any more."""

    name = "dead"
    help = "Jobs that exhausted their attempts."
    statuses = (str(Status.DEAD_LETTER),)
    empty = "No dead letters."

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        job_filter = replace(query.filter, statuses=(str(Status.DEAD_LETTER),))
        return await super().read(rt, replace(query, filter=job_filter))
