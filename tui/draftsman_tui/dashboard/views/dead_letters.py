"""Dead letters: jobs that exhausted their attempts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.domain.job import Status
from draftsman.domain.read_models import JobSummary
from draftsman_tui.dashboard.resource import Query, Rows
from draftsman_tui.dashboard.views.jobs import JobsResource

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
