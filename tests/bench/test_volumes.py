"""Claims beside held jobs, and schedules that are due at the same time, with few jobs."""

from __future__ import annotations

from datetime import datetime

import pytest

from bench import volumes
from bench.goals import GOALS
from bench.install import ours
from bench.measure import Run
from bench.queue_process import load_contestant
from bench.report import SCHEDULES, Key, Results
from bench.resource_usage import server_cpu
from bench.schedule import scenarios
from bench.server import BenchError, BenchServer, session
from draftsman.database.database import Connection
from draftsman.runtime import Runtime


def test_ratios_of_drains_with_limits_are_to_the_plain_drain() -> None:
    results = Results()
    results.add(Key("drain10", "draftsman"), {"rate": 1000.0})
    results.add(Key("limited10", "draftsman"), {"rate": 700.0})
    results.add(Key("persons10", "draftsman"), {"rate": 900.0})
    verdicts = {goal.name: goal.verdict(results) for goal in GOALS}
    assert verdicts["limited10 / drain10"][1:] == ("0.70", ">= 0.8", "missed by 13%")
    assert verdicts["persons10 / drain10"][1:] == ("0.90", ">= 0.8", "met")


def test_volumes_are_not_measured_over_a_history() -> None:
    assert {scenario.name for scenario in scenarios(1000, None) if scenario.fresh} == {
        "held",
        "schedules",
        "agents",
        "commands",
    }


async def test_claims_beside_held_jobs_take_only_the_others(
    rt: Runtime, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "OF_KEY", 3)
    claimer = volumes.Claimer(rt)
    await claimer.submit(10, 4)
    assert len(claimer.times) == 0
    for _ in range(3):
        await claimer.claim()
    counts = await (
        await conn.execute(
            "SELECT concurrency_key IS NOT NULL, hold::text, status::text, count(*)"
            " FROM draftsman.job_states GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
    ).fetchall()
    assert counts == [
        (False, None, "completed", 20),
        (False, None, "queued", 970),
        (False, None, "running", 10),
        (True, "key", "queued", 8),
        (True, None, "queued", 4),
    ]
    monkeypatch.setattr(volumes, "SLOTS", 5000)
    with pytest.raises(BenchError, match="jobs were claimed and settled"):
        await claimer.claim()


async def test_each_schedule_is_fired_once(
    database: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = volumes._add

    async def add_due_now(run: Run, after: datetime) -> datetime:
        due = await add(run, after)
        async with session(run.url) as changed:
            await changed.conn.execute(
                "UPDATE draftsman.schedules SET due_at = %s, fire_at = %s", (due, due)
            )
        return due

    monkeypatch.setattr(volumes, "_add", add_due_now)
    monkeypatch.setattr(volumes, "LEAD", -60.0)
    program = ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    async with session(database_url) as admin:
        run = Run(
            BenchServer(database_url, admin), side, database, "fast", 20, server_cpu(admin.conn)
        )
        figures = await volumes.schedules(run)
        assert figures["schedules"] == 20
        assert set(figures) == set(SCHEDULES)
        assert await admin.value(volumes.ONCE, *[20] * 4)
        await admin.conn.execute(
            "INSERT INTO draftsman.schedule_fires (schedule, due_at, status, reason)"
            " SELECT min(id), now(), 'skipped', 'a second occurrence' FROM draftsman.schedules"
        )
        assert not await admin.value(volumes.ONCE, *[20] * 4)
