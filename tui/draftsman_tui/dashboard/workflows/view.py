"""Groups of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.workflows.groups import MEANINGS, GroupState, JobGroup
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class GroupsResource(Resource[JobGroup]):
    """The newest groups."""

    name = "groups"
    help = "Groups of jobs, newest first. Enter lists the jobs of a group."
    statuses = tuple(map(str, GroupState))
    fields = ("status", "by", "age")
    empty = "No groups. To create a group: draftsman submit --group NAME --sequential"
    poll_interval = 2.0
    columns = (
        Column[JobGroup]("GROUP", 16, most=30, order=lambda row: row.name.casefold()),
        Column[JobGroup]("STATUS", 9, order=lambda row: row.state),
        Column[JobGroup]("KIND", 10, from_width=90, order=lambda row: row.kind),
        Column[JobGroup]("JOBS", 0, order=lambda row: row.total),
        Column[JobGroup]("ON FAILURE", 10, from_width=110, order=lambda row: row.on_failure),
        Column[JobGroup]("BY", 12, most=24, from_width=110, order=lambda row: row.created_by),
        Column[JobGroup]("AGE", 6, right=True, order=lambda row: row.created_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[JobGroup]:
        return Rows(await rt.workflows.groups.all())

    def key(self, row: JobGroup) -> str:
        return row.name

    def table(self, row: JobGroup) -> tuple[str, Filter]:
        return "jobs", Filter(group=row.name)

    def invokers(self, row: JobGroup) -> Sequence[str]:
        return row.invokers

    def cells(self, row: JobGroup, now: datetime) -> Sequence[Cell]:
        return (
            cells.text(row.name, "key"),
            cells.status_cell(row.state, MEANINGS[row.state]),
            Cell(row.kind),
            Cell(row.progress),
            Cell(row.on_failure),
            cells.text(row.created_by),
            cells.age(row.created_at, now),
        )

    def filter_fields(self, row: JobGroup) -> FilterFields:
        return FilterFields(row.name, row.state, by=row.created_by, at=row.created_at)
