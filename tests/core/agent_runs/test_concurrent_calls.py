"""Concurrent calls through real gateways under one budget."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import date
from uuid import UUID

import httpx
import pytest

from draftsman.agent_runs.protocol.agent_messages import UsageMessage
from draftsman.agent_runs.session import usage_meter
from draftsman.agent_runs.session.usage_meter import UsageMeter
from draftsman.costs.budgets import CallEstimate
from draftsman.database.database import Connection
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.retries import RetryPolicy
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.runtime import Runtime
from draftsman.sandbox.gateway.gateway import Gateway, ModelCall
from draftsman.sandbox.gateway.http_server import serve
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.settings.http import HttpSettings
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman_testing.factories import Factory
from tests.support.budgets import set_budgets
from tests.support.fake_model import fake_model

JOBS = 50
CALL = {
    "model": "fake-1",
    "stream": True,
    "max_tokens": 20,
    "messages": [],
    "tools": [{"type": "function", "function": {"name": "none"}}],
}
PRICE = PriceSettings(input=1, output=50_000, date=date(2026, 11, 1), source="test")
COST = (1000 * 1 + 20 * 50_000) / 1e6
"""Cost of a call of the fake model."""


class _Ledger:
    """The ledger of a run, without an agent."""

    def __init__(self, rt: Runtime, work: ClaimedJob) -> None:
        run = WorkerRun(work, rt, RetryPolicy(), 600)
        self.meter = UsageMeter(run, {}, None, metered=True)

    async def refuse(self, reason: str) -> None:
        raise AssertionError(reason)

    async def reserve(self, call: UUID, estimate: CallEstimate) -> str | None:
        state = await self.meter.reserve(call, estimate)
        return None if state.outcome == "reserved" else state.outcome

    async def record(self, call: ModelCall) -> None:
        usage = UsageMessage(input_tokens=call.usage.input, cost_usd=call.cost_usd)
        await self.meter.add(usage, call.id)

    async def release(self, call: UUID) -> None:
        await self.meter.release(call)


async def test_fifty_concurrent_calls_pass_a_daily_budget_by_one_call(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_meter, "POLL", 0.05)
    await set_budgets(conn, all={"cost_usd": 10.5})
    works = [await make.running() for _ in range(JOBS)]
    with fake_model([{"text": "done"}]) as model:
        settings = GatewaySettings(provider="openai", base_url=model.url)
        async with AsyncExitStack() as stack:
            clients = []
            for work in works:
                ledger = _Ledger(rt, work)
                prices = {"fake-1": PRICE}
                gateway = Gateway(settings, HttpSettings(), prices, RetryPolicy(), ledger)
                access = GatewayAccess("openai", gateway.token, private_network=False)
                stack.enter_context(access)
                listener = await access.port.listener()
                await stack.enter_async_context(serve(listener, gateway.respond))
                client = httpx.AsyncClient(
                    base_url=access.environment()["OPENAI_BASE_URL"],
                    headers={"authorization": f"Bearer {gateway.token}"},
                    trust_env=False,
                    timeout=60,
                )
                clients.append(await stack.enter_async_context(client))
            replies = await asyncio.gather(
                *(client.post("/chat/completions", json=CALL) for client in clients)
            )
    statuses = [reply.status_code for reply in replies]
    assert (statuses.count(200), statuses.count(403)) == (11, JOBS - 11)
    [use] = await rt.budgets.uses()
    assert use.reserved == 0
    assert use.used == pytest.approx(11 * COST)
    assert use.used < use.budget + COST
