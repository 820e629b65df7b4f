"""Groups of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.entities.groups import GROUPS
from draftsman.workflows.groups import GroupState, JobGroup
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class GroupsResource(ListedResource[JobGroup]):
    """The newest groups."""

    help = "Groups of jobs, newest first. Enter lists the jobs of a group."
    statuses = tuple(map(str, GroupState))
    fields = ("status", "by", "age")
    entity = GROUPS
    poll_interval = 2.0

    def table(self, row: JobGroup) -> tuple[str, Filter]:
        return "jobs", Filter(group=row.name)

    def invokers(self, row: JobGroup) -> Sequence[str]:
        return row.invokers

    def filter_fields(self, row: JobGroup) -> FilterFields:
        return FilterFields(row.name, row.state, by=row.created_by, at=row.created_at)
