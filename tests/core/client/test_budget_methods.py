"""Methods of the clients for budgets and costs."""

from __future__ import annotations

import pytest

from draftsman.client.asynchronous import Client
from draftsman.database.database import Connection
from draftsman.errors import UsageError
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.budgets import set_budgets


async def test_budgets_and_costs_have_their_use(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    client = Client(rt)
    assert (await client.budgets(), await client.costs()) == ([], [])
    await set_budgets(conn, job={"cost_usd": 5})
    work = await make.running()
    await rt.model_calls.record(work.lease, {"cost_usd": 2, "output_tokens": 10}, "large")
    rule, used = await client.budgets()
    assert (rule.name, rule.budget) == ("job:*", 5)
    assert (used.name, used.used, used.budget) == (f"job:{work.number}", 2, 5)
    [cost] = await client.costs("model", 86_400)
    assert (cost.value, cost.calls, cost.cost_usd, cost.output_tokens) == ("large", 1, 2, 10)
    with pytest.raises(UsageError, match="by must be one of repo, person"):
        await client.costs("host")
    with pytest.raises(UsageError, match="since must be more than 0"):
        await client.costs(since=float("nan"))
