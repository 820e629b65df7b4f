"""Permission rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.questions.permission_rules.permission_rule import (
    MEANINGS,
    PermissionRule,
    RuleStatus,
)
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column
from draftsman_tui.entities.permission_rules import expiry_text

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class RulesResource(Resource[PermissionRule]):
    """The newest rules."""

    name = "rules"
    help = "Rules that allow commands of agents. A person ratifies or revokes them."
    statuses = tuple(map(str, RuleStatus))
    fields = ("status", "repo", "by", "age")
    empty = "No rules. A rule is proposed after equal decisions on commands of agents."
    columns = (
        Column[PermissionRule]("RULE", 5, right=True, order=lambda row: row.id),
        Column[PermissionRule]("STATUS", 9, order=lambda row: row.status),
        Column[PermissionRule]("REPO", 14, most=30, order=lambda row: row.repo.casefold()),
        Column[PermissionRule]("ALLOWS", 0, order=lambda row: row.text),
        Column[PermissionRule](
            "USES", 6, right=True, order=lambda row: row.uses, largest_first=True
        ),
        Column[PermissionRule]("EXPIRES", 10, from_width=80),
        Column[PermissionRule](
            "RATIFIED BY", 12, from_width=100, order=lambda row: row.ratified_by or ""
        ),
        Column[PermissionRule]("AGE", 6, right=True, order=lambda row: row.proposed_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[PermissionRule]:
        return Rows(await rt.rules.all())

    def key(self, row: PermissionRule) -> str:
        return str(row.id)

    def cells(self, row: PermissionRule, now: datetime) -> Sequence[Cell]:
        return (
            Cell(str(row.id), "key"),
            cells.status_cell(row.status, MEANINGS[row.status]),
            cells.text(row.repo),
            cells.text(row.text),
            Cell(f"{row.uses:,}", "dim" if not row.uses else ""),
            Cell(expiry_text(row, now)),
            cells.text(row.ratified_by or ""),
            cells.age(row.proposed_at, now),
        )

    def filter_fields(self, row: PermissionRule) -> FilterFields:
        return FilterFields(
            row.text,
            str(row.status),
            repo=row.repo,
            by=row.ratified_by or row.proposed_by,
            at=row.proposed_at,
        )
