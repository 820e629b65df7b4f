"""Dead letters: jobs that spent all their tries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.domain.job import Status
from draftsman.services.jobs.read_model import JobSummary
from draftsman_tui.dashboard.resource import Query, Rows
from draftsman_tui.dashboard.views.jobs import JobsResource

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class DeadLettersResource(JobsResource):
    """The jobs that nobody will try again by themselves."""

    name = "dead"
    help = "Jobs that spent all their tries."
    statuses = (str(Status.DEAD_LETTER),)
    empty = "No dead letters: no job has spent all its tries."

    async def read(self, rt: Runtime, query: Query) -> Rows[JobSummary]:
        """Return a page of them, whatever status the filter names."""
        wanted = replace(query.filter, statuses=(str(Status.DEAD_LETTER),))
        return await super().read(rt, replace(query, filter=wanted))
