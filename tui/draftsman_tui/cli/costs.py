"""The commands `budgets` and `costs`: budgets with their use, and the costs of the last days."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from draftsman.costs.budgets import Cost, CostGroup
from draftsman.entities.costs import BUDGETS, COSTS, BudgetRow, CostRow, budget_title, cost_rows
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.lists import print_list
from draftsman_tui.terminal import params


@command(
    "budgets",
    section="Queues and costs",
    examples=("draftsman budgets", "draftsman budgets --json"),
    lists=BUDGETS,
)
async def budgets(app: App) -> None:
    """List each budget with its use.

    These are the configured budgets, and those of unfinished jobs that have run, of the newest 200
    jobs of each status. Budgets of repositories, people and all jobs are those of today.
    """
    async with app.runtime(read_only=True) as rt:
        uses = await rt.budgets.uses()
        missing = rt.budgets.missing(uses)
    rows = [BudgetRow(use) for use in uses]
    if not app.json:
        rows += [BudgetRow(use, applied=False) for use in missing]
    print_list(app, BUDGETS, rows)
    if missing:
        names = ", ".join(dict.fromkeys(budget_title(use) for use in missing))
        app.out.info(
            f"not in effect: {names}; a worker that becomes the leader applies its configuration"
        )


@command(
    "costs",
    section="Queues and costs",
    examples=(
        "draftsman costs",
        "draftsman costs --by model --since 30d",
        "draftsman costs --by day --json",
    ),
    lists=COSTS,
)
@click.option(
    "--by",
    type=click.Choice([group.value for group in CostGroup]),
    default=CostGroup.REPO.value,
    show_default=True,
    help="Group costs by this.",
)
@params.period_options("", "The last days, today included.", default="7d", show_default=True)
async def costs(app: App, *, by: str, since: float, until: float | None) -> None:
    """Show tokens and costs by repository, person or day.

    Costs cover all runs. Days are those of [budgets] timezone.
    """
    params.check_period(since, until)
    async with app.runtime(read_only=True) as rt:
        found = await rt.budgets.costs(by, since, until or 0)
    rows = cost_rows(CostGroup(by), found, datetime.now(UTC))
    if rows and not app.json:
        rows.append(CostRow(CostGroup(by), _total(found), 1, rows[0].at))
    print_list(app, COSTS, rows)


def _total(costs: list[Cost]) -> Cost:
    return Cost(
        "total",
        sum(cost.calls for cost in costs),
        sum(cost.cost_usd for cost in costs),
        sum(cost.input_tokens for cost in costs),
        sum(cost.output_tokens for cost in costs),
    )
