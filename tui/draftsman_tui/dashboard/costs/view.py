"""Tokens and costs by repository, person, agent, model or day; and budgets."""

from __future__ import annotations

from typing import Final

from draftsman.costs.budgets import CostGroup
from draftsman.entities.costs import (
    BUDGETS,
    COSTS,
    BudgetRow,
    CostRow,
    budget_title,
    cost_rows,
)
from draftsman.ids import job_number
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows

DAYS: Final = 7 * 86_400.0
"""Seconds of the costs without `age<`."""


class CostsResource(Resource[CostRow]):
    """Costs of the last days."""

    name = "costs"
    help = "Tokens and costs of the last 7 days by repository; others: kind:person age<30d."
    kinds = tuple(map(str, CostGroup))
    fields = ("status", "age")
    entity = COSTS
    hint = "for others: costs kind:person age<30d"

    async def read(self, rt: Runtime, query: Query) -> Rows[CostRow]:
        since = query.filter.seconds(query.now, DAYS)
        rows: list[CostRow] = []
        for by in query.filter.statuses or (CostGroup.REPO,):
            group = CostGroup(by)
            rows += cost_rows(group, await rt.budgets.costs(group, since), query.now)
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

    def filter_fields(self, row: CostRow) -> FilterFields:
        return FilterFields(row.cost.value or "none", str(row.by), at=row.at)


class BudgetsResource(Resource[BudgetRow]):
    """Configured budgets of today, and those of unfinished jobs."""

    name = "budgets"
    help = "Budgets of today and of unfinished jobs, with the amounts left."
    statuses = ("open", "low", "used", "inactive")
    fields = ("status",)
    entity = BUDGETS

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

    def filter_fields(self, row: BudgetRow) -> FilterFields:
        return FilterFields(budget_title(row.use), row.status)
