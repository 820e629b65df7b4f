"""Job loader: reads only data that may have changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind, ActivityState
from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import wait_blocked
from draftsman_tui.dashboard.jobs.details import loader
from draftsman_tui.dashboard.jobs.details.header import head
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.loader import JobLoader
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot


async def seen(rt: Runtime, job_loader: JobLoader) -> JobSnapshot:
    return (await job_loader.read(rt, await rt.checkpoints.now())).snapshot


def texts(snapshot: JobSnapshot) -> list[str]:
    assert snapshot.log is not None
    return [line.text for line in snapshot.log.lines]


async def test_loader_reads_only_data_that_may_have_changed(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def watched(service: Any, name: str) -> None:
        real = getattr(service, name)

        async def call(*args: Any, **more: Any) -> Any:
            calls.append(name)
            return await real(*args, **more)

        monkeypatch.setattr(service, name, call)

    for service in (rt.read_model, rt.questions, rt.outbox, rt.checkpoints, rt.archives):
        for name in [name for name in dir(service) if not name.startswith("_") and name != "now"]:
            if callable(getattr(service, name)):
                watched(service, name)
    number = await make.queued()
    job_loader = JobLoader(number)
    first = await seen(rt, job_loader)
    assert (first.job.status, len(first.details.events)) == (Status.QUEUED, 1)
    calls.clear()
    again = await seen(rt, job_loader)
    assert calls == ["version", "latest_job_events"]
    assert (again.job, [*again.details.events]) == (first.job, first.details.events)
    work = await make.running(number)
    assert (await seen(rt, job_loader)).job.status is Status.RUNNING
    await rt.checkpoints.event(work.lease, "noted", {})
    calls.clear()
    assert (await seen(rt, job_loader)).details.events[-1].kind == "noted"
    assert calls == ["version", "latest_job_events"]
    await rt.job_control.cancel(number, owner, force=True)
    over = await seen(rt, job_loader)
    assert (over.job.status, over.why, over.details.events[-1].kind) == (
        Status.CANCELED,
        None,
        "job_canceled",
    )
    calls.clear()
    job_loader.tab = "log"
    await seen(rt, job_loader)
    assert calls == ["version", "latest_job_events", "log_end"]
    assert job_loader.poll_interval == loader.FINISHED_INTERVAL
    assert not job_loader.is_affected_by([])
    assert not job_loader.is_affected_by(await rt.read_model.job_events(await make.queued()))
    assert job_loader.is_affected_by(await rt.read_model.job_events(number))


async def test_log_is_loaded_from_its_end(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "LOG_CHUNKS", 2)
    monkeypatch.setattr(loader, "LOG_CHARACTERS", 60)
    work = await make.running()
    for seq in range(20):
        await rt.checkpoints.log(work.lease, seq, f"{seq} is a line\n")
    job_loader = JobLoader(work.number, "log")
    first = await seen(rt, job_loader)
    assert texts(first)[-1] == "19 is a line"
    assert first.log is not None
    assert first.log.earlier
    assert 2 <= len(first.log.lines) < 10
    await rt.checkpoints.log(work.lease, 20, "20 is")
    assert texts(await seen(rt, job_loader)) == [*texts(first), "20 is"]
    await rt.checkpoints.log(work.lease, 21, " longer\n")
    await rt.checkpoints.log(work.lease, 22, "22\n")
    await rt.checkpoints.log(work.lease, 23, "23\n")
    assert texts(await seen(rt, job_loader)) == [*texts(first), "20 is longer", "22", "23"]
    assert job_loader.poll_interval == loader.LOG_INTERVAL
    for seq in range(24, 60):  # more than a load reads: it continues from the end
        await rt.checkpoints.log(work.lease, seq, f"{seq} is a line\n")
    behind = await seen(rt, job_loader)
    assert texts(behind)[-1] == "59 is a line"
    assert "23" not in texts(behind)
    await rt.settlement.outcome(work, Done({}))
    await seen(rt, job_loader)
    assert job_loader.poll_interval == loader.FINISHED_INTERVAL


async def test_activity_is_in_the_log_and_its_progress_in_the_header(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 0, "output\n")
    steps = [{"text": "read", "state": "completed"}, {"text": "write", "state": "running"}]
    plan = Activity(ActivityKind.PLAN, "", detail={"entries": steps})
    call = Activity(ActivityKind.TOOL, "npm\x1b test", ActivityState.RUNNING, key="1")
    thought = Activity(ActivityKind.THOUGHT, "hm")
    await rt.activity.append(work.lease, 1, [plan, call, thought], QuotaLimit(9))
    job_loader = JobLoader(work.number, "log")
    shown = await seen(rt, job_loader)
    assert texts(shown) == [
        "output",
        "[plan] 1 of 2 steps: write",
        "▸ npm\x1b test … running",
        "hm",
    ]
    assert shown.doing == "1 of 2 steps: write · ▸ npm\\u{1b} test"
    said = Activity(ActivityKind.MESSAGE, "The tests\npass\n")
    await rt.activity.append(work.lease, 4, [said], QuotaLimit(9))
    shown = await seen(rt, job_loader)
    assert texts(shown)[-2:] == ["The tests", "pass"]
    assert shown.doing == "1 of 2 steps: write · pass"
    line = "".join(cell.text for cell in head(shown, shown.at)[2])
    assert line.startswith("now  ")
    assert "; 1 of 2 steps: write · pass; " in line
    await rt.settlement.outcome(work, Done({}))
    done = await seen(rt, job_loader)
    assert "steps" not in "".join(cell.text for cell in head(done, done.at)[2])


async def test_log_of_a_run_has_no_lines_of_other_runs(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 0, "first\n")
    await rt.settlement.release_run(work, "shutdown")
    again = await make.running(work.number)
    await rt.checkpoints.log(again.lease, 0, "second\n")
    job_loader = JobLoader(work.number, "log")
    assert texts(await seen(rt, job_loader)) == ["first", "second"]
    for run, text in ((1, "first"), (2, "second")):
        job_loader.show_run(run)
        assert texts(await seen(rt, job_loader)) == [text]


async def test_newest_events_are_kept_and_omitted_events_are_reported(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "EVENTS", 4)
    work = await make.running()
    job_loader = JobLoader(work.number)
    first = await seen(rt, job_loader)
    assert (len(first.details.events), first.details.has_earlier_events) == (3, False)
    for nth in range(9):
        await rt.checkpoints.event(work.lease, f"said_{nth}", {})
    later = await seen(rt, job_loader)
    assert [event.kind for event in later.details.events] == [f"said_{nth}" for nth in range(5, 9)]
    assert later.details.has_earlier_events


async def test_start_of_a_large_patch_is_read_once(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "PATCH_MEBIBYTES", 1)
    work = await make.running()
    job_loader = JobLoader(work.number, "diff")
    assert (await seen(rt, job_loader)).patch is None
    data = b"--- a/x\n+++ b/x\n" + b"+new\n" * 300_000
    await rt.changes.store(work.lease, data)
    first = (await seen(rt, job_loader)).patch
    assert first is not None
    assert (first.size, len(first.text), first.cut) == (len(data), 1024 * 1024, True)
    assert (await seen(rt, job_loader)).patch is first
    await rt.changes.store(work.lease, b"another")
    after = (await seen(rt, job_loader)).patch
    assert after is not None
    assert (after.text, after.cut) == ("another", False)


async def test_the_tab_of_the_runs_lists_steps_and_checkpoints(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    job_loader = JobLoader(work.number, "runs")
    assert (
        len(
            drawn := JOB_TABS["runs"].items(
                await seen(rt, job_loader), 80, await rt.checkpoints.now()
            )
        )
        == 1
    )
    for n in range(22):
        await rt.checkpoints.begin_step(work.lease, f"page {n:02}", f"invocation-{n}")
        if n < 21:
            await rt.checkpoints.finish_step(work.lease, f"page {n:02}", {"n": n})
    await rt.checkpoints.save(work.lease, {"page": 21})
    drawn = JOB_TABS["runs"].items(await seen(rt, job_loader), 80, await rt.checkpoints.now())
    texts = ["".join(c.text for row in item.rows for c in row) for item in drawn]
    run, steps, earlier, checkpoints = texts
    assert "running" in run
    assert steps.startswith("Steps  pending page 21  run 1  now  ← now  done    page 20")
    assert earlier == "  earlier steps    enter: show them"
    mark = "  ← the next run continues from here"
    assert checkpoints == f"Checkpoints  run 1  now  12 B of data{mark}"
    await rt.settlement.outcome(work, Done())
    assert len((await seen(rt, job_loader)).details.checkpoints) == 1


async def test_a_canceled_first_read_is_repeated(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    job_loader = JobLoader((await make.asked()).number)
    async with conn.transaction():
        await conn.execute("LOCK draftsman.job_questions IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(seen(rt, job_loader))
        async with rt.db.connection() as other:
            await wait_blocked(other, by=conn.info.backend_pid)
        reading.cancel()
        await asyncio.wait({reading})
    snapshot = await seen(rt, job_loader)
    assert snapshot.open is not None
