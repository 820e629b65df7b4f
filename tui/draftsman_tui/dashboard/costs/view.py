"""Tokens and costs by repository, person, agent, model or day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.costs.budgets import Cost, CostGroup, amount_text
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows

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
