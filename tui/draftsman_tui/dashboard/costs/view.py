"""Tokens and costs by repository, person, agent, model or day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.costs.budgets import BudgetUse, Cost, CostGroup, amount_text
from draftsman.ids import job_number
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.costs import budget_title, is_rule
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


DAYS: Final = 7 * 86_400.0
"""Seconds of the costs without `age<`."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """The costs of a repository, person, agent, model or day, read at a time."""

    by: CostGroup
    cost: Cost
    share: float
    """Part of all costs of the group; of the tokens if nothing has a price."""
    at: datetime


@table_view
class CostsResource(Resource[CostRow]):
    """Costs of the last days."""

    name = "costs"
    help = "Tokens and costs of the last 7 days by repository; others: kind:person age<30d."
    statuses = tuple(map(str, CostGroup))
    fields = ("status", "age")
    empty = "No costs in this time. For others: costs kind:person age<30d"
    columns = (
        Column[CostRow]("BY", 7, order=lambda row: row.by),
        Column[CostRow]("NAME", 0, order=lambda row: row.cost.value),
        Column[CostRow](
            "COST", 12, right=True, order=lambda row: row.cost.cost_usd, largest_first=True
        ),
        Column[CostRow]("SHARE", 6, right=True, order=lambda row: row.share, largest_first=True),
        Column[CostRow](
            "CALLS", 9, right=True, order=lambda row: row.cost.calls, largest_first=True
        ),
        Column[CostRow](
            "INPUT TOKENS",
            15,
            right=True,
            from_width=100,
            order=lambda row: row.cost.input_tokens,
            largest_first=True,
        ),
        Column[CostRow](
            "OUTPUT TOKENS",
            15,
            right=True,
            from_width=110,
            order=lambda row: row.cost.output_tokens,
            largest_first=True,
        ),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[CostRow]:
        since = DAYS if query.filter.newer is None else query.filter.newer
        rows: list[CostRow] = []
        for by in query.filter.statuses or (CostGroup.REPO,):
            group = CostGroup(by)
            costs = await rt.budgets.costs(group, since)
            rows += [CostRow(group, cost, share(cost, costs), query.now) for cost in costs]
        return Rows(rows)

    def key(self, row: CostRow) -> str:
        return f"{row.by}:{row.cost.value}"

    def table(self, row: CostRow) -> tuple[str, Filter] | None:
        """Return the jobs of a repository, person or agent."""
        value = row.cost.value or None
        filters = {
            CostGroup.REPO: Filter(repo=value),
            CostGroup.PERSON: Filter(by=value),
            CostGroup.AGENT: Filter(agent=value),
        }
        return ("jobs", filters[row.by]) if value and row.by in filters else None

    def cells(self, row: CostRow, now: datetime) -> Sequence[Cell]:
        cost = row.cost
        return (
            Cell(str(row.by), "dim"),
            cells.text(cost.value or "none", "key"),
            Cell(amount_text("cost_usd", cost.cost_usd)),
            Cell(f"{row.share:.0%}", "dim"),
            Cell(f"{cost.calls:,}"),
            Cell(f"{cost.input_tokens:,}"),
            Cell(f"{cost.output_tokens:,}"),
        )

    def filter_fields(self, row: CostRow) -> FilterFields:
        return FilterFields(row.cost.value or "none", str(row.by), at=row.at)


def share(cost: Cost, costs: Sequence[Cost]) -> float:
    """Return the part of a row of all rows; of the tokens if nothing has a price."""
    total = sum(other.cost_usd for other in costs)
    if total > 0:
        return cost.cost_usd / total
    tokens = sum(other.input_tokens + other.output_tokens for other in costs)
    return (cost.input_tokens + cost.output_tokens) / tokens if tokens else 0.0


# Budgets and the amounts that are left.


LOW: Final = 0.1
"""Part of a budget below which the rest is low."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A budget, and whether a worker has applied it."""

    use: BudgetUse
    applied: bool = True

    @property
    def remaining(self) -> float:
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
        return "low" if self.remaining <= use.budget * LOW else "open"


@table_view
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
            "LEFT", 20, most=20, right=True, order=lambda row: row.remaining / row.use.budget
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
        rule = is_rule(use)
        warns = {"low": "warns", "used": "warns", "open": "calm"}.get(row.status, "dim")
        return (
            cells.text(budget_title(use), "key"),
            Cell(row.status, warns),
            Cell(
                "" if rule else amount_text(use.measure, row.remaining),
                warns if row.status in ("low", "used") else "",
            ),
            Cell(amount_text(use.measure, use.budget)),
            Cell("" if rule else amount_text(use.measure, use.used)),
            Cell(use.day.isoformat() if use.day else "", "dim"),
            Cell(amount_text(use.measure, use.added) if use.added else "", "dim"),
            Cell(amount_text(use.measure, use.reserved) if use.reserved else "", "dim"),
        )

    def filter_fields(self, row: BudgetRow) -> FilterFields:
        return FilterFields(budget_title(row.use), row.status)
