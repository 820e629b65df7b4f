"""The commands `budgets` and `costs`: budgets with their use, and the costs of the last days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.costs.budgets import Cost, CostGroup, amount_text
from draftsman_tui.cli.app import App, command
from draftsman_tui.entities.costs import budget_title, is_rule
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import one_line

if TYPE_CHECKING:
    from draftsman.costs.budgets import BudgetUse, Cost


@command(
    "budgets",
    section="Queues and costs",
    examples=("draftsman budgets", "draftsman budgets --json"),
)
async def budgets(app: App) -> None:
    """List each budget with its use.

    These are the configured budgets, and those of unfinished jobs that have run, of the newest 200
    jobs of each status. Budgets of repositories, people and all jobs are those of today. RESERVED
    is the maximum use of running calls, and ADDED the part of BUDGET that people added.
    """
    async with app.runtime(read_only=True) as rt:
        uses = await rt.budgets.uses()
        missing = rt.budgets.missing(uses)
    if app.json:
        app.out.document(uses)
    elif uses or missing:
        heads = ("FOR", "DAY", "USED", "RESERVED", "BUDGET", "ADDED")
        rows = [_use_row(use) for use in (*uses, *missing)]
        app.out.table(heads, rows, flexible=0, right=(2, 3, 4, 5))
    if missing:
        names = ", ".join(dict.fromkeys(budget_title(use) for use in missing))
        app.out.info(
            f"not in effect: {names}; a worker that becomes the leader applies its configuration"
        )
    elif not uses:
        app.out.info("no budgets: [budgets] of the configuration has none; see: draftsman config")


@command(
    "costs",
    section="Queues and costs",
    examples=(
        "draftsman costs",
        "draftsman costs --by model --since 30d",
        "draftsman costs --by day --json",
    ),
)
@click.option(
    "--by",
    type=click.Choice([group.value for group in CostGroup]),
    default=CostGroup.REPO.value,
    show_default=True,
    help="Group costs by this.",
)
@click.option(
    "--since",
    type=params.DURATION,
    default="7d",
    show_default=True,
    help="The last days, today included.",
)
async def costs(app: App, *, by: str, since: float) -> None:
    """Show tokens and costs by repository, person or day.

    Costs cover all runs. Days are those of [budgets] timezone. Calls
    of models without a price count as 0.
    """
    async with app.runtime(read_only=True) as rt:
        cost_rows = await rt.budgets.costs(by, since)
    if app.json:
        app.out.document(cost_rows)
    elif not cost_rows:
        app.out.info("no costs in this time")
    else:
        heads = (by.upper(), "CALLS", "INPUT TOKENS", "OUTPUT TOKENS", "COST")
        rows = [_cost_row(cost) for cost in cost_rows]
        rows.append(_cost_row(_total(cost_rows)))
        app.out.table(heads, rows, flexible=0, right=(1, 2, 3, 4))


def _use_row(use: BudgetUse) -> tuple[str, ...]:
    day = use.day.isoformat() if use.day else ""
    return (
        budget_title(use),
        day,
        "" if is_rule(use) else amount_text(use.measure, use.used),
        amount_text(use.measure, use.reserved) if use.reserved else "",
        amount_text(use.measure, use.budget),
        amount_text(use.measure, use.added) if use.added else "",
    )


def _cost_row(cost: Cost) -> tuple[str, ...]:
    return (
        one_line(cost.value) or "none",
        f"{cost.calls:,}",
        f"{cost.input_tokens:,}",
        f"{cost.output_tokens:,}",
        amount_text("cost_usd", cost.cost_usd),
    )


def _total(costs: list[Cost]) -> Cost:
    return Cost(
        "total",
        sum(cost.calls for cost in costs),
        sum(cost.cost_usd for cost in costs),
        sum(cost.input_tokens for cost in costs),
        sum(cost.output_tokens for cost in costs),
    )
