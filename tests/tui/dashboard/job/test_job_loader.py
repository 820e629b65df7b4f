"""The look at a job: it reads what may have changed, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain.job import Status
from draftsman.domain.outcome import Done
from draftsman.domain.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.job import loader
from draftsman_tui.dashboard.job.loader import JobLoader
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from tests.factories import Factory


async def seen(rt: Runtime, one: JobLoader) -> JobSnapshot:
    return (await one.read(rt, await rt.checkpoints.now())).snapshot


def texts(found: JobSnapshot) -> list[str]:
    assert found.log is not None
    return [line.text for line in found.log.lines]


async def test_only_what_may_have_changed_is_read(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def watched(service: Any, name: str) -> None:
        real = getattr(service, name)

        async def call(*args: Any, **more: Any) -> Any:
            asked.append(name)
            return await real(*args, **more)

        monkeypatch.setattr(service, name, call)

    for service in (rt.read_model, rt.questions, rt.outbox, rt.checkpoints, rt.archives):
        for name in [one for one in dir(service) if not one.startswith("_") and one != "now"]:
            if callable(getattr(service, name)):
                watched(service, name)
    number = await make.queued()
    one = JobLoader(number)
    first = await seen(rt, one)
    assert (first.job.status, len(first.events)) == (Status.QUEUED, 1)
    asked.clear()
    again = await seen(rt, one)
    assert asked == ["status_and_version", "latest_job_events"]
    assert (again.job, again.events) == (first.job, first.events)
    work = await make.running(number)
    assert (await seen(rt, one)).job.status is Status.RUNNING
    await rt.checkpoints.event(work.lease, "said", {})
    asked.clear()
    assert (await seen(rt, one)).events[-1].kind == "said"
    assert asked == ["status_and_version", "latest_job_events"]
    await rt.job_control.cancel(number, owner, force=True)
    over = await seen(rt, one)
    assert (over.job.status, over.why, over.events[-1].kind) == (
        Status.CANCELED,
        None,
        "job_canceled",
    )
    asked.clear()
    one.tab = "log"
    await seen(rt, one)
    assert asked == ["status_and_version", "latest_job_events", "log_end"]
    assert one.poll_interval == loader.FINISHED_INTERVAL
    assert not one.is_affected_by([])
    assert not one.is_affected_by(await rt.read_model.job_events(await make.queued()))
    assert one.is_affected_by(await rt.read_model.job_events(number))


async def test_a_log_is_followed_from_its_end(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "LOG_CHUNKS", 2)
    monkeypatch.setattr(loader, "LOG_CHARACTERS", 60)
    work = await make.running()
    for seq in range(20):
        await rt.checkpoints.log(work.lease, seq, f"{seq} is a line\n")
    one = JobLoader(work.number, "log")
    first = await seen(rt, one)
    assert texts(first)[-1] == "19 is a line"
    assert first.log is not None
    assert first.log.earlier
    assert 2 <= len(first.log.lines) < 10
    await rt.checkpoints.log(work.lease, 20, "20 is")
    assert texts(await seen(rt, one)) == [*texts(first), "20 is"]
    await rt.checkpoints.log(work.lease, 21, " longer\n")
    await rt.checkpoints.log(work.lease, 22, "22\n")
    await rt.checkpoints.log(work.lease, 23, "23\n")
    assert texts(await seen(rt, one)) == [*texts(first), "20 is longer", "22", "23"]
    assert one.poll_interval == loader.LOG_INTERVAL
    for seq in range(24, 60):  # more than one look reads: it goes on from the end
        await rt.checkpoints.log(work.lease, seq, f"{seq} is a line\n")
    behind = await seen(rt, one)
    assert texts(behind)[-1] == "59 is a line"
    assert "23" not in texts(behind)
    await rt.settlement.outcome(work, Done({}))
    await seen(rt, one)
    assert one.poll_interval == loader.FINISHED_INTERVAL


async def test_a_log_of_one_run_has_nothing_of_the_others(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 0, "first\n")
    await rt.settlement.release_run(work, "shutdown")
    again = await make.running(work.number)
    await rt.checkpoints.log(again.lease, 0, "second\n")
    one = JobLoader(work.number, "log")
    assert texts(await seen(rt, one)) == ["first", "second"]
    for run, text in ((1, "first"), (2, "second")):
        one.show_run(run)
        assert texts(await seen(rt, one)) == [text]


async def test_the_newest_events_are_kept_and_the_rest_is_told(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "EVENTS", 4)
    work = await make.running()
    one = JobLoader(work.number)
    first = await seen(rt, one)
    assert (len(first.events), first.earlier) == (3, False)
    for nth in range(9):
        await rt.checkpoints.event(work.lease, f"said_{nth}", {})
    later = await seen(rt, one)
    assert [event.kind for event in later.events] == [f"said_{nth}" for nth in range(5, 9)]
    assert later.earlier


async def test_the_beginning_of_a_large_patch_is_read_once(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    one = JobLoader(work.number, "diff")
    assert (await seen(rt, one)).patch is None
    data = b"--- a/x\n+++ b/x\n" + b"+new\n" * 300_000
    await rt.checkpoints.artifact(work.lease, "changes.patch", "patch", data)
    first = (await seen(rt, one)).patch
    assert first is not None
    assert (first.size, len(first.text), first.cut) == (len(data), 1024 * 1024, True)
    assert (await seen(rt, one)).patch is first
    await rt.checkpoints.artifact(work.lease, "changes.patch", "patch", b"another")
    after = (await seen(rt, one)).patch
    assert after is not None
    assert (after.text, after.cut) == ("another", False)
