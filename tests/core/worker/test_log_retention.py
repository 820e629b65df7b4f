"""Retention of logs: those of old finished jobs are deleted, all others are kept."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.database.database import Connection
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.event_history import over_a_year, with_retention
from tests.support.statements import rows


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    sweeps = settings.sweeps.model_copy(update={"limit": 2})
    return with_retention(settings, tmp_path, logs=12).model_copy(update={"sweeps": sweeps})


async def logged(rt: Runtime, make: Factory, *, ends: bool = True) -> int:
    work = await make.running()
    for seq in range(3):
        await rt.checkpoints.log(work.lease, seq, f"line {seq}\n")
    item = Activity(ActivityKind.MESSAGE, "done")
    await rt.activity.append(work.lease, 1, [item], QuotaLimit(9))
    if ends:
        await rt.settlement.outcome(work, Done({}))
    return work.number


async def jobs_with_logs(conn: Connection) -> list[int]:
    jobs = await rows(conn, "SELECT DISTINCT job FROM draftsman.run_log_chunks ORDER BY 1")
    return [job for (job,) in jobs]


async def test_old_logs_are_deleted_in_batches_and_logs_of_live_jobs_are_kept(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    live = await logged(rt, make, ends=False)
    ended_late = await make.running()
    await rt.checkpoints.log(ended_late.lease, 0, "early\n")
    old = [await logged(rt, make) for _ in range(3)]
    await clock.forward(over_a_year())
    await rt.settlement.outcome(ended_late, Done({}))
    young = await logged(rt, make)
    assert await rt.archives.prune(LeaderTerm(uuid4(), 1)) == 0
    assert await jobs_with_logs(conn) == [live, ended_late.number, *old, young]
    assert await rt.archives.prune(LeaderTerm()) == 6 + 2
    left = await jobs_with_logs(conn)
    assert [job for job in left if job not in old] == [live, ended_late.number, young]
    assert len(left) == 4
    assert await rt.archives.prune(LeaderTerm()) == 3 + 1
    kept = [number for number in (live, *old, young) if await rt.activity.page(number)]
    assert kept == [live, young]
    assert await rt.archives.prune(LeaderTerm()) == 0
    assert await jobs_with_logs(conn) == [live, ended_late.number, young]
    assert len(await rt.checkpoints.logs(live)) == 3
    assert not any((await rt.read_model.invariants()).values())
