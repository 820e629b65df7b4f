"""A sweep with much to do lets the next one run after a while, and goes on when it runs again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs import sweep as sweeping
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.queues.service import queues
from draftsman.queues.service import sweeps as queue_sweeps
from draftsman.runtime import Runtime
from draftsman.settings.limits import UsageSettings
from draftsman_testing.factories import Factory
from tests.core.worker.workers import runtime_with
from tests.support.statements import run, value

JOBS = 6
BY_TYPE = 350
Patch = pytest.MonkeyPatch
Work = Callable[[Runtime, Factory, Actor, Connection, Patch], Awaitable[tuple[str, str, list[int]]]]
"""Makes work for a sweep; returns the sweep, a query for what is done, and how much a first sweep
without time does, and all."""


async def _submit(rt: Runtime, owner: Actor, count: int, **fields: Any) -> None:
    await rt.submissions.submit_many([invocation(queue="q", **fields)] * count, owner)


async def found_by_type(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, patch: Patch
) -> tuple[str, str, list[int]]:
    patch.setattr(queue_sweeps, "JOBS", 100)
    await make.worker_row(queues=["q"], types=["noop"])
    await _submit(rt, owner, BY_TYPE, type="odd")
    return "types", "by_type", [100, 300]  # the last 50 are too few


async def failing(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, patch: Patch
) -> tuple[str, str, list[int]]:
    patch.setattr(queue_sweeps, "FAILED_AT_ONCE", 2)
    await make.worker_row(queues=["q"], types=["noop"])
    await _submit(rt, owner, JOBS, type="gone")
    return "types", "status = 'failed'", [2, JOBS]


async def paused(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, patch: Patch
) -> tuple[str, str, list[int]]:
    patch.setattr(queues, "BATCH", 2)
    await _submit(rt, owner, JOBS, type="noop")
    await run(
        conn,
        "INSERT INTO draftsman.queue_pauses (queue, type, reason, paused_by)"
        " VALUES ('q', 'noop', 'r', 'system')",
    )
    return "holds", "hold = 'paused'", [2, JOBS]


async def limited(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, patch: Patch
) -> tuple[str, str, list[int]]:
    patch.setattr(queue_sweeps, "CHECKED", 2)
    await _submit(rt, owner, JOBS, type="noop")
    rules = UsageSettings.model_validate({"queue": {"q": {"running": 9}}}).rules()
    text = "SELECT draftsman.set_limits(%s::jsonb, 'system')"
    await run(conn, text, (json.dumps(rules),))
    return "limits", "limits IS NOT NULL", [0, JOBS]  # the first pass checks the buckets


@pytest.mark.parametrize("work", [found_by_type, failing, paused, limited])
async def test_a_sweep_ends_after_its_time_and_goes_on_when_it_runs_again(
    rt: Runtime,
    make: Factory,
    owner: Actor,
    conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
    work: Work,
) -> None:
    some = runtime_with(rt, types={"gone": {"unhandled": "fail"}})
    sweep, done, counts = await work(rt, make, owner, conn, monkeypatch)
    query = f"SELECT count(*) FROM draftsman.job_states WHERE {done}"
    for seconds, count in zip((0.0, 60.0), counts, strict=True):
        monkeypatch.setattr(sweeping, "SWEEP_TIME", seconds)
        await some.sweeps.run(sweep, LeaderTerm())
        assert await value(conn, query) == count
