"""Budgets and the amounts that are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.costs.budgets import BudgetUse, amount_text
from draftsman.ids import job_number
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows
from draftsman_tui.entities.costs import budget_title, is_rule

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

LOW: Final = 0.1
"""Part of a budget below which the rest is low."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A budget, and whether a worker has applied it."""

    use: BudgetUse
    applied: bool = True

    @property
    def left(self) -> float:
        """The amount that no call has used or reserved."""
        return max(self.use.budget - self.use.used - self.use.reserved, 0.0)

    @property
    def status(self) -> str:
        """Return `open`, `low`, `used`, or `inactive` before a worker has applied it."""
        use = self.use
        if not self.applied:
            return "inactive"
        if use.used >= use.budget:
            return "used"
        return "low" if self.left <= use.budget * LOW else "open"


class BudgetsResource(Resource[BudgetRow]):
    """Configured budgets of today, and those of unfinished jobs."""

    name = "budgets"
    help = "Budgets of today and of unfinished jobs, with the amounts left."
    statuses = ("open", "low", "used", "inactive")
    fields = ("status",)
    empty = "No budgets: [budgets] of the configuration has none."
    columns = (
        Column[BudgetRow]("FOR", 0, order=lambda row: row.use.name),
        Column[BudgetRow]("STATUS", 8, order=lambda row: row.status),
        Column[BudgetRow](
            "LEFT", 20, most=20, right=True, order=lambda row: row.left / row.use.budget
        ),
        Column[BudgetRow]("BUDGET", 20, most=20, right=True),
        Column[BudgetRow]("USED", 20, most=20, right=True, from_width=110),
        Column[BudgetRow](
            "DAY", 10, from_width=120, optional=True, order=lambda row: str(row.use.day or "")
        ),
        Column[BudgetRow]("ADDED", 20, most=20, right=True, optional=True, from_width=140),
        Column[BudgetRow]("RESERVED", 20, most=20, right=True, optional=True, from_width=160),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[BudgetRow]:
        uses = await rt.budgets.uses()
        rows = [BudgetRow(use) for use in uses]
        return Rows([*rows, *(BudgetRow(use, applied=False) for use in rt.budgets.missing(uses))])

    def key(self, row: BudgetRow) -> str:
        return f"{row.use.name} {row.use.day or ''} {row.use.measure}"

    def job(self, row: BudgetRow) -> int | None:
        return job_number(budget_title(row.use))

    def table(self, row: BudgetRow) -> tuple[str, Filter] | None:
        """Return the jobs of a repository or person."""
        scope, _, value = row.use.name.partition(":")
        filters = {"repo": Filter(repo=value), "person": Filter(by=value)}
        return ("jobs", filters[scope]) if scope in filters and value != "*" else None

    def cells(self, row: BudgetRow, now: datetime) -> Sequence[Cell]:
        use = row.use
        used, reserved, left, budget, added = (
            amount_text(use.measure, amount)
            for amount in (use.used, use.reserved, row.left, use.budget, use.added)
        )
        warns = {"low": "warns", "used": "warns", "open": "calm"}.get(row.status, "dim")
        rule = is_rule(use)
        return (
            cells.text(budget_title(use), "key"),
            Cell(row.status, warns),
            Cell("" if rule else left, warns if row.status in ("low", "used") else ""),
            Cell(budget),
            Cell("" if rule else used),
            Cell(use.day.isoformat() if use.day else "", "dim"),
            Cell(added if use.added else "", "dim"),
            Cell(reserved if use.reserved else "", "dim"),
        )

    def filter_fields(self, row: BudgetRow) -> FilterFields:
        return FilterFields(budget_title(row.use), row.status)
