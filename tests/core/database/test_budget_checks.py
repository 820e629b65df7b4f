"""Constraints of budgets."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

BUDGET: Final = {"scope": "'repo'", "value": "'shop'", "cost_usd": "5"}
CHANGE: Final = {"budgets": "'[]'", "timezone": "'UTC'", "actor": "'system'"}
USE: Final = {"name": "'repo:shop'", "day": "'2026-11-25'"}
JOB: Final = {"name": "'job:1'", "day": "'-infinity'"}
RESERVATION: Final = {
    "call": "gen_random_uuid()",
    "name": "'all:*'",
    "day": "'2026-11-25'",
    "job": "1",
    "lease_token": "1",
    "cost_usd": "0",
    "input_tokens": "0",
    "output_tokens": "0",
}
COST: Final = {
    "day": "'2026-11-25'",
    "repo": "''",
    "person": "''",
    "agent": "''",
    "model": "''",
    "calls": "1",
    "cost_usd": "0",
    "input_tokens": "0",
    "output_tokens": "0",
}
MEASURES: Final = ("cost_usd", "input_tokens", "output_tokens")
WRONG: Final = [
    ("budgets", BUDGET | {"scope": "'host'"}, "budgets_scope_check"),
    ("budgets", BUDGET | {"value": "''"}, "budgets_value_check"),
    *(("budgets", BUDGET | {name: "0"}, f"budgets_{name}_check") for name in MEASURES),
    ("budgets", BUDGET | {"cost_usd": "NULL"}, "budgets_amount"),
    ("budget_changes", CHANGE | {"budgets": "'{}'"}, "budget_changes_budgets_check"),
    ("budget_changes", CHANGE | {"timezone": "''"}, "budget_changes_timezone_check"),
    ("budget_changes", CHANGE | {"actor": "''"}, "budget_changes_actor_check"),
    ("budget_uses", USE | {"name": "''"}, "budget_uses_name_check"),
    *(("budget_uses", USE | {name: "-1"}, f"budget_uses_{name}_check") for name in MEASURES),
    ("budget_uses", USE | {"day": "'-infinity'"}, "budget_uses_day"),
    ("budget_uses", JOB | {"day": "'2026-11-25'"}, "budget_uses_day"),
    ("budget_uses", JOB | {"budget": "'[]'"}, "budget_uses_budget_check"),
    ("budget_uses", USE | {"budget": "'{}'"}, "budget_uses_budget"),
    *(
        ("budget_reservations", RESERVATION | {name: "-1"}, f"budget_reservations_{name}_check")
        for name in MEASURES
    ),
    ("daily_costs", COST | {"calls": "0"}, "daily_costs_calls_check"),
    *(("daily_costs", COST | {name: "-1"}, f"daily_costs_{name}_check") for name in MEASURES),
]
RAISES: Final = [
    ("measure", "'hours'", "budget_raises_measure_check"),
    ("amount", "0", "budget_raises_amount_check"),
]
TABLES: Final = (WRONG, RAISES)


@cases(("table", "columns", "constraint"), WRONG)
async def test_a_budget_has_valid_columns(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})")


@cases(("column", "value", "constraint"), RAISES)
async def test_a_raise_adds_to_an_amount(
    make: Factory, conn: Connection, column: str, value: str, constraint: str
) -> None:
    work = await make.asked()
    columns = {
        "job": str(work.number),
        "question": "1",
        "name": "'all:*'",
        "day": "'2026-11-25'",
        "measure": "'cost_usd'",
        "amount": "1",
    } | {column: value}
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.budget_raises ({names}) VALUES ({values})")
