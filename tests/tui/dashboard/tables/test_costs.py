"""Rows of the tables of costs and budgets, without a screen."""

from __future__ import annotations

from datetime import UTC, date, datetime

from draftsman.costs.budgets import BudgetUse, Cost, CostGroup
from draftsman.entities.costs import BudgetRow, CostRow, share
from draftsman_tui.dashboard.costs.view import BudgetsResource, CostsResource
from draftsman_tui.dashboard.tables.filter import Filter
from tests.support.cases import cases

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def cost(value: str, cost_usd: float = 0.0, tokens: int = 0) -> Cost:
    return Cost(value, 2, cost_usd, tokens, 0)


def test_the_share_is_that_of_money_or_without_prices_of_tokens() -> None:
    priced = [cost("pay", 3, 1), cost("shop", 1, 999)]
    assert [share(row, priced) for row in priced] == [0.75, 0.25]
    free = [cost("pay", tokens=1), cost("shop", tokens=3)]
    assert [share(row, free) for row in free] == [0.25, 0.75]
    assert share(cost("pay"), [cost("pay")]) == 0


@cases(
    ("by", "value", "jobs"),
    [
        (CostGroup.REPO, "acme/pay", Filter(repo="acme/pay")),
        (CostGroup.PERSON, "anna", Filter(by="anna")),
        (CostGroup.AGENT, "codex", Filter(agent="codex")),
        (CostGroup.DAY, "2030-01-01", None),
        (CostGroup.MODEL, "large", None),
        (CostGroup.REPO, "", None),
    ],
)
def test_enter_lists_the_jobs_of_a_repository_person_or_agent(
    by: CostGroup, value: str, jobs: Filter | None
) -> None:
    table = CostsResource().table(CostRow(by, cost(value), 1, NOW))
    assert table == (jobs and ("jobs", jobs))


def use(name: str, used: float = 0, reserved: float = 0, day: date | None = None) -> BudgetUse:
    return BudgetUse(name, day, "cost_usd", used, reserved, 10, 0)


def test_a_budget_shows_what_is_left() -> None:
    resource = BudgetsResource()
    day = NOW.date()
    rows = {
        "open": BudgetRow(use("repo:acme/pay", 8.9, day=day)),
        "low": BudgetRow(use("job:7", 5, 4.5)),
        "used": BudgetRow(use("person:anna", 12, day=day)),
        "inactive": BudgetRow(use("repo:*"), applied=False),
    }
    assert {name: row.status for name, row in rows.items()} == {name: name for name in rows}
    texts = {name: [cell.text for cell in resource.cells(row, NOW)] for name, row in rows.items()}
    assert texts["low"] == ["D-7", "low", "$0.50", "$10.00", "$5.00", "", "", "$4.50"]
    assert texts["used"][2] == "$0.00"
    assert texts["inactive"][:3] == ["each repo", "inactive", ""]
    assert resource.job(rows["low"]) == 7
    assert resource.job(rows["open"]) is None
    assert resource.table(rows["open"]) == ("jobs", Filter(repo="acme/pay"))
    assert resource.table(rows["used"]) == ("jobs", Filter(by="anna"))
    assert resource.table(rows["inactive"]) is None
    assert resource.table(rows["low"]) is None
