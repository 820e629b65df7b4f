"""Runs of real workers under the budget of a day: 50 at a time, and a worker that is killed."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.costs.budgets import BudgetUse
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.conftest import installations as installations
from tests.acceptance.processes import Installation, Process
from tests.core.agent_runs.gateway_agents import CALL, KEY
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.support.faulty_server import FaultyServer, Request, Writer, answer, web

pytestmark = pytest.mark.timeout(600)
RUNS: Final = 50
SECONDS: Final = 240.0
"""Deadline of each wait: 50 sandboxes start on two cores."""
BUDGET: Final = 20.5
"""US dollars; each call costs one."""
AGENT: Final = (
    CALL
    + """
for number in range(CALLS):
    if "usage" not in call(max_tokens=100):
        hear() and sys.exit(0)
say("result", summary="done")
"""
)
REPLY: Final = {"model": "claude-x", "usage": {"input_tokens": 1, "output_tokens": 100}}


class Provider:
    """A provider that answers the first calls, and each other call once `released` is set."""

    def __init__(self, server: FaultyServer, at_once: int = 0) -> None:
        self.server = server
        self.released = asyncio.Event()
        self._at_once = at_once
        self.answered = 0
        server.routes["/v1/messages"] = self._answer

    async def _answer(self, request: Request, writer: Writer) -> None:
        if len(self.server.requests) > self._at_once:
            await self.released.wait()
        writer.write(answer(json.dumps(REPLY).encode(), content_type="application/json"))
        await writer.drain()
        self.answered += 1


def configure(host: Installation, provider: Provider, calls: int, **settings: Any) -> None:
    """Configure an agent that makes these calls, each of which costs a dollar."""
    price = 'prices."claude-*".'
    host.configure(
        agent=AGENT.replace("CALLS", str(calls)),
        **{
            "agents.test.gateway": "model",
            "gateways.model.provider": "anthropic",
            "gateways.model.base_url": provider.server.url("/"),
            "gateways.model.api_key.env": "KEY_OF_TEST",
            f"{price}input": 0,
            f"{price}output": 10_000,
            f"{price}date": "2026-11-01",
            f"{price}source": "test",
            "budgets.all.cost_usd": BUDGET,
        },
        **settings,
    )


def start(host: Installation, slots: int) -> Process:
    """Start a worker."""
    return host.start("worker", "--slots", str(slots), env={"KEY_OF_TEST": KEY})


async def all_jobs(rt: Runtime) -> BudgetUse:
    """Return the use of the budget of all jobs today."""
    return next(use for use in await rt.budgets.uses() if use.name == "all:*")


async def costs_of_runs(rt: Runtime, numbers: list[int]) -> float:
    """Return the costs of all runs of these jobs."""
    runs = [run for number in numbers for run in await rt.read_model.runs(number)]
    return float(sum((run.usage or {}).get("cost_usd", 0) for run in runs))


async def test_fifty_runs_of_two_workers_pass_the_budget_of_a_day_by_one_call(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    installations: Callable[[str], Installation],
) -> None:
    repo = str(make_repository(tmp_path / "repo"))
    async with web() as server:
        provider = Provider(server)
        hosts = [installations(name) for name in ("one", "two")]
        for host in hosts:
            configure(host, provider, calls=3)
        for host in hosts:
            start(host, RUNS // 2)
        numbers = [await submit_agent_job(make, repo, agent="test") for _ in range(RUNS)]

        async def all_run() -> bool:
            jobs = [await rt.read_model.job(number) for number in numbers]
            assert not [job.last_error for job in jobs if job.last_error]
            return all(job.status is Status.RUNNING for job in jobs)

        await until(all_run, "50 runs at a time", SECONDS)
        most = int(BUDGET) + 1
        await until(lambda: _is(len(server.requests) >= int(BUDGET)), "the first calls", SECONDS)
        provider.released.set()

        async def all_stopped() -> bool:
            jobs = [await rt.read_model.job(number) for number in numbers]
            return all(job.status in (Status.WAITING_FOR_INPUT, Status.COMPLETED) for job in jobs)

        await until(all_stopped, "every run stopped", SECONDS)
        use = await all_jobs(rt)
        assert (provider.answered, len(server.requests)) == (most, most)
    assert (use.used, use.reserved) == (most, 0)
    assert await costs_of_runs(rt, numbers) == most
    questions = [(await rt.questions.of_job(number))[0] for number in numbers]
    texts = {question.text for asked in questions for question in asked}
    assert len(texts) == 1
    assert f"All jobs together have used ${most}.00 of ${BUDGET:.2f}" in texts.pop()


async def test_a_worker_killed_during_a_call_loses_and_doubles_nothing(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    installations: Callable[[str], Installation],
) -> None:
    async with web() as server:
        provider = Provider(server, at_once=1)
        host = installations("one")
        configure(host, provider, calls=2, worker__lease=3, worker__heartbeat=0.5)
        worker = start(host, 1)
        number = await submit_agent_job(make, str(make_repository(tmp_path / "repo")), agent="test")
        await until(lambda: _is(len(server.requests) == 2), "the second call", SECONDS)
        use = await all_jobs(rt)
        assert (use.used, use.reserved) == (1, 1)
        worker.signal(signal.SIGKILL)
        await worker.end()
        provider.released.set()
        start(host, 1)

        async def ended() -> bool:
            job = await rt.read_model.job(number)
            return job.status is Status.COMPLETED

        await until(ended, "the next run", SECONDS)
        assert len(server.requests) == 4, "the next run makes both calls"
    use = await all_jobs(rt)
    assert (use.used, use.reserved) == (3, 0)
    runs = sorted(await rt.read_model.runs(number), key=lambda run: run.ordinal)
    assert [(run.usage or {}).get("cost_usd") for run in runs] == [1, 2]


async def _is(value: bool) -> bool:
    return value
