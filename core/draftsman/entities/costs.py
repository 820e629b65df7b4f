"""Costs, and budgets with their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.costs.budgets import BudgetUse, Cost, CostGroup, amount_text
from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, Surface
from draftsman.entities.terms import Measure
from draftsman.formats.json_data import as_data
from draftsman.text import first_line


def budget_title(use: BudgetUse) -> str:
    """Return the subject of a budget: `repo shop`, `D-142`, `each person`."""
    scope, _, value = use.name.partition(":")
    if scope == "all":
        return "all jobs"
    if scope == "job" and value != "*":
        return f"D-{value}"
    return first_line(f"each {scope}" if value == "*" else f"{scope} {value}", 200)


def is_rule(use: BudgetUse) -> bool:
    """Return whether a budget is that of each repository, person, job or call, without a use."""
    return use.day is None and not use.name.partition(":")[2].isdecimal()


@dataclass(frozen=True, slots=True)
class CostRow:
    """The costs of a repository, person, agent, model or day, read at a time."""

    by: CostGroup
    cost: Cost
    share: float
    """Part of all costs of the group; of the tokens if nothing has a price."""
    at: datetime


def share(cost: Cost, costs: Sequence[Cost]) -> float:
    """Return the part of a row of all rows; of the tokens if nothing has a price."""
    total = sum(other.cost_usd for other in costs)
    if total > 0:
        return cost.cost_usd / total
    tokens = sum(other.input_tokens + other.output_tokens for other in costs)
    return (cost.input_tokens + cost.output_tokens) / tokens if tokens else 0.0


def cost_rows(by: CostGroup, costs: Sequence[Cost], at: datetime) -> list[CostRow]:
    """Return the rows of costs, with their shares."""
    return [CostRow(by, cost, share(cost, costs), at) for cost in costs]


COSTS: Final[Entity[CostRow]] = Entity(
    empty="no costs in this time",
    data=lambda row: as_data(row.cost),
    json_class="draftsman.costs.budgets:Cost",
    columns=(
        Column(
            "KIND",
            7,
            help="Its kind.",
            cell=lambda row, _: Cell(str(row.by), "dim"),
            order=lambda row: row.by,
            only=Surface.DASHBOARD,  # a list of the command line has a single kind
        ),
        Column(
            "NAME",
            help="Whose figures these are.",
            cell=lambda row, _: cells.text(row.cost.value or "none", "key"),
            cut=True,
            order=lambda row: row.cost.value,
        ),
        Column(
            "COST",
            12,
            help="Its cost in dollars; models without a price count as 0.",
            cell=lambda row, _: Cell(amount_text("cost_usd", row.cost.cost_usd)),
            right=True,
            order=lambda row: row.cost.cost_usd,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        Column(
            "SHARE",
            6,
            help="Part of all costs, or of all tokens if nothing has a price.",
            cell=lambda row, _: Cell(f"{row.share:.0%}", "dim"),
            right=True,
            order=lambda row: 100 * row.share,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        shared_columns.number(
            "CALLS", 9, help="Calls of models.", of=lambda row: row.cost.calls, largest_first=True
        ),
        shared_columns.number(
            "INPUT",
            15,
            help="Input tokens.",
            of=lambda row: row.cost.input_tokens,
            from_width=100,
            largest_first=True,
        ),
        shared_columns.number(
            "OUTPUT",
            15,
            help="Output tokens.",
            of=lambda row: row.cost.output_tokens,
            from_width=110,
            largest_first=True,
        ),
    ),
)


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


STATUS_ROLES: Final = {"open": "calm", "low": "warns", "used": "warns", "inactive": "dim"}


def _amount(row: BudgetRow, amount: float, role: str = "") -> Cell:
    """Format an amount that the budget of each repository, person or job does not have."""
    return Cell("" if is_rule(row.use) else amount_text(row.use.measure, amount), role)


def _part(row: BudgetRow, amount: float) -> Cell:
    return Cell(amount_text(row.use.measure, amount) if amount else "", "dim")


BUDGETS: Final[Entity[BudgetRow]] = Entity(
    empty="no budgets: [budgets] of the configuration has none",
    hint="see: draftsman config",
    data=lambda row: as_data(row.use),
    json_class="draftsman.costs.budgets:BudgetUse",
    columns=(
        Column(
            "SCOPE",
            help="The jobs that it is for.",
            cell=lambda row, _: cells.text(budget_title(row.use), "key"),
            cut=True,
            order=lambda row: row.use.name,
        ),
        shared_columns.status(lambda row: Cell(row.status, STATUS_ROLES[row.status]), 8),
        Column(
            "LEFT",
            20,
            help="Amount that no call has used or reserved.",
            cell=lambda row, _: _amount(
                row, row.remaining, "warns" if row.status in ("low", "used") else ""
            ),
            right=True,
            most=20,
            order=lambda row: None if is_rule(row.use) else row.remaining,
            measure=Measure.NUMBER,
        ),
        Column(
            "BUDGET",
            20,
            help="The whole amount.",
            cell=lambda row, _: Cell(amount_text(row.use.measure, row.use.budget)),
            right=True,
            most=20,
        ),
        Column(
            "USED",
            20,
            help="Amount that calls have used.",
            cell=lambda row, _: _amount(row, row.use.used),
            right=True,
            most=20,
            from_width=110,
        ),
        Column(
            "DAY",
            10,
            help="Day of the use; empty for a job.",
            cell=lambda row, _: Cell(row.use.day.isoformat() if row.use.day else "", "dim"),
            from_width=120,
            order=lambda row: str(row.use.day or ""),
            optional=True,
        ),
        Column(
            "ADDED",
            20,
            help="Part of the amount that people added.",
            cell=lambda row, _: _part(row, row.use.added),
            right=True,
            most=20,
            from_width=140,
            optional=True,
        ),
        Column(
            "RESERVED",
            20,
            help="Maximum use of running calls.",
            cell=lambda row, _: _part(row, row.use.reserved),
            right=True,
            most=20,
            from_width=160,
            optional=True,
        ),
    ),
)
