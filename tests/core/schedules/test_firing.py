"""Occurrences: each has a single outcome, whatever was missed, overlaps or fails."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from draftsman.errors import NotFound
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.runs import sweep as sweeping
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime, wire
from draftsman.schedules import store as schedules
from draftsman.schedules.schedule import (
    FireStatus,
    Misfire,
    Overlap,
    Schedule,
    due_occurrences,
    jitter,
)
from draftsman.schedules.template import define
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.schedules.test_schedules import REQUEST, spec
from tests.support.clock import Clock

S = FireStatus
HOUR = 3600.0


@pytest.fixture
def owner(people: People) -> Actor:
    """Give the owner of the database, as anna."""
    return replace(people.anna, owner=True)


async def _fire(rt: Runtime) -> int:
    return await rt.sweeps.run("schedules", LeaderTerm())


async def _history(rt: Runtime, name: str = "hourly") -> list[tuple[FireStatus, int | None]]:
    """Return status and job of each occurrence, oldest first."""
    return [(fire.status, fire.job) for fire in (await rt.schedules.history(name))[::-1]]


async def _to_next(rt: Runtime, clock: Clock, name: str = "hourly", late: float = 1) -> None:
    """Move the clock to the next occurrence."""
    schedule = await rt.schedules.get(name)
    assert schedule.fire_at is not None
    await clock.forward((schedule.fire_at - await rt.schedules.now()).total_seconds() + late)


async def test_the_jobs_of_an_unknown_type_wait_and_the_schedule_says_so(
    rt: Runtime, people: People, clock: Clock
) -> None:
    """The configuration of the leader does not decide which types other workers handle."""
    added = await rt.schedules.add(spec(request={"type": "nothing"}), people.anna)
    assert "a worker that handles the type 'nothing'" in (await rt.schedules.problem(added) or "")
    await _to_next(rt, clock)
    assert await _fire(rt) == 1
    job = await rt.read_model.job(1)
    assert (job.type, job.status) == ("nothing", Status.QUEUED)


async def test_an_occurrence_submits_one_job_in_the_name_of_its_author(
    rt: Runtime, people: People, clock: Clock
) -> None:
    await rt.templates.add("ping", define(REQUEST | {"tags": ["{tag}"]} | _schema()), people.olga)
    fields: dict[str, Any] = {"request": None, "template": "ping", "params": {"tag": "night"}}
    added = await rt.schedules.add(spec(**fields), people.anna)
    assert (added.last_status, added.last_reason) == (None, None)
    assert await _fire(rt) == 0
    await _to_next(rt, clock)
    assert await _fire(rt) == 1
    assert await _fire(rt) == 0
    job = await rt.read_model.job(1)
    assert (job.source, job.invoker_id, job.tags) == (Source.SCHEDULE, "anna", ["night"])
    assert (job.template, job.template_version, job.status) == ("ping", 1, Status.QUEUED)
    assert added.due_at is not None
    assert job.idempotency_key == added.key(added.due_at)
    [fire] = await rt.schedules.history()
    assert (fire.due_at, fire.status, fire.job) == (added.due_at, S.FIRED, 1)
    assert await rt.schedules.of_job(1) == fire
    schedule = await rt.schedules.get("hourly")
    assert schedule.due_at == added.due_at + timedelta(hours=1)
    assert (schedule.last_job, schedule.last_status) == (1, S.FIRED)
    created = (await rt.read_model.job_events(1))[0]
    assert created.actor == "schedule:anna"


def _schema() -> dict[str, Any]:
    return {"parameters": {"properties": {"tag": {"type": "string"}}, "required": ["tag"]}}


@pytest.mark.parametrize(
    ("misfire", "outcomes"),
    [
        (Misfire.SKIP, [S.SKIPPED] * 5),
        (Misfire.LAST, [S.SKIPPED] * 4 + [S.FIRED]),
        (Misfire.ALL, [S.SKIPPED] * 2 + [S.FIRED, S.WAITING, S.WAITING]),
    ],
)
async def test_missed_occurrences_follow_the_policy(
    rt: Runtime, owner: Actor, clock: Clock, misfire: Misfire, outcomes: list[FireStatus]
) -> None:
    fields: dict[str, Any] = {"misfire": misfire, "misfire_limit": 3, "overlap": Overlap.QUEUE}
    await rt.schedules.add(spec(**fields), owner)
    await _to_next(rt, clock, late=4 * HOUR + 120)
    assert await _fire(rt) == 1
    assert [status for status, _ in await _history(rt)] == outcomes
    reasons = {fire.reason for fire in await rt.schedules.history() if fire.status is S.SKIPPED}
    assert all(reason and reason.startswith("missed: ") for reason in reasons)
    schedule = await rt.schedules.get("hourly")
    assert schedule.due_at is not None
    assert schedule.due_at > await rt.schedules.now()


async def test_a_punctual_occurrence_is_not_missed(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec(misfire=Misfire.SKIP), owner)
    await _to_next(rt, clock, late=50)
    await _fire(rt)
    assert await _history(rt) == [(S.FIRED, 1)]


async def test_many_missed_occurrences_are_counted(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec(rule="@every 1m"), owner)
    await _to_next(rt, clock, late=10_000 * 60.0)
    await _fire(rt)
    history = await rt.schedules.history("hourly", 1000)
    assert Counter(fire.status for fire in history) == {S.SKIPPED: 109, S.FIRED: 1}
    assert (
        history[-1].reason == "missed: a later occurrence was due; 9,891 earlier were missed, too"
    )


async def test_an_overlap_is_skipped(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock
) -> None:
    await rt.schedules.add(spec(), owner)
    for _ in range(2):
        await _to_next(rt, clock)
        await _fire(rt)
    assert await _history(rt) == [(S.FIRED, 1), (S.SKIPPED, None)]
    assert (await rt.schedules.history())[0].reason == "D-1 is unfinished"
    await rt.job_control.cancel(1, owner)
    await _to_next(rt, clock)
    await _fire(rt)
    assert (await _history(rt))[-1] == (S.FIRED, 2)


async def test_queued_occurrences_fire_one_after_the_other(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    await rt.schedules.add(spec(overlap=Overlap.QUEUE, misfire_limit=2), owner)
    for _ in range(4):
        await _to_next(rt, clock)
        await _fire(rt)
    assert [status for status, _ in await _history(rt)] == [
        S.FIRED,
        S.WAITING,
        S.WAITING,
        S.SKIPPED,
    ]
    assert await _fire(rt) == 0
    assert (await rt.sweeps.next_due() or 0) > 0
    await rt.job_control.cancel(1, owner)
    assert (await rt.sweeps.next_due() or 0) < 0, "the leader's timer wakes"
    assert await _fire(rt) == 1
    assert await _fire(rt) == 0, "D-2 is unfinished"
    assert (await _history(rt))[:3] == [(S.FIRED, 1), (S.FIRED, 2), (S.WAITING, None)]
    reasons = [fire.reason for fire in await rt.schedules.history()]
    assert reasons == ["2 occurrences wait already", "D-2 is unfinished", None, None]
    await rt.job_control.cancel(2, owner)
    await _to_next(rt, clock)
    assert await _fire(rt) == 1
    assert (await _history(rt))[2:] == [(S.FIRED, 3), (S.SKIPPED, None), (S.WAITING, None)]


async def test_a_waiting_occurrence_fires_before_a_newer_one(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    for name in ("first", "second"):
        await rt.schedules.add(spec(name, overlap=Overlap.QUEUE), owner)
    for _ in range(2):
        await _to_next(rt, clock, "first")
        await _fire(rt)
    for number in (1, 2):
        await rt.job_control.cancel(number, owner)
    await _to_next(rt, clock, "first", late=30)
    async with rt.db.connection() as conn:  # due first, while the other is ready first
        await conn.execute(
            "UPDATE draftsman.schedules SET fire_at = due_at + interval '9 s' WHERE name = 'first'"
        )
    sweeps = rt.settings.sweeps.model_copy(update={"limit": 1})
    await _fire(wire(rt.settings.model_copy(update={"sweeps": sweeps}), rt.db, False))
    outcomes = [status for status, _ in await _history(rt, "second")]
    assert outcomes == [S.FIRED, S.FIRED, S.WAITING]
    await rt.schedules.pause("second", owner, "freeze")
    paused = next(schedule for schedule in await rt.schedules.all() if schedule.name == "second")
    assert (paused.last_status, paused.last_reason) == (S.WAITING, "the schedule is paused")


async def test_many_schedules_let_the_other_sweeps_have_their_turn(
    rt: Runtime, owner: Actor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second", "third"):
        await rt.schedules.add(spec(name), owner)
    await _to_next(rt, clock, late=30, name="first")
    sweeps = rt.settings.sweeps.model_copy(update={"limit": 1})
    few = wire(rt.settings.model_copy(update={"sweeps": sweeps}), rt.db, False)
    with monkeypatch.context() as patched:
        patched.setattr(sweeping, "SWEEP_TIME", 0)
        assert await _fire(few) == 1
    assert await _fire(few) == 2


async def test_occurrences_that_wait_are_not_read_again_for_each_batch(
    rt: Runtime, owner: Actor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand of them take a tenth of a second to read, and a hundred batches to write."""
    reads: list[int] = []
    find = schedules.ready

    async def ready(*values: Any) -> list[Schedule]:
        reads.append(len(found := await find(*values)))
        return found

    monkeypatch.setattr(schedules, "ready", ready)
    names = [f"s{number}" for number in range(5)]
    for name in names:
        await rt.schedules.add(spec(name, overlap=Overlap.QUEUE), owner)
    sweeps = rt.settings.sweeps.model_copy(update={"limit": 2})
    few = wire(rt.settings.model_copy(update={"sweeps": sweeps}), rt.db, False)
    for _ in range(2):
        await _to_next(rt, clock, late=30, name="s0")
        assert await _fire(few) == 5
    for number in range(1, 6):
        await rt.job_control.cancel(number, owner)
    assert await _fire(few) == 5
    assert reads == [0, 0, 2, 2, 1]
    assert [(await _history(rt, name))[1][0] for name in names] == [S.FIRED] * 5


@pytest.mark.parametrize("running", [True, False])
async def test_the_unfinished_job_is_canceled(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock, running: bool
) -> None:
    await rt.schedules.add(spec(overlap=Overlap.CANCEL_RUNNING), owner)
    await _to_next(rt, clock)
    await _fire(rt)
    if running:
        await make.running(1)
    await _to_next(rt, clock)
    await _fire(rt)
    job = await rt.read_model.job(1)
    assert job.cancel_reason == "schedule hourly is due again"
    assert job.status is (Status.RUNNING if running else Status.CANCELED)
    assert await _history(rt) == [(S.FIRED, 1), (S.FIRED, 2)]


async def test_a_removed_template_is_refused_and_an_agent_of_other_workers_is_not(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    await rt.templates.add("ping", define(REQUEST), owner)
    await rt.schedules.add(spec("a", template="ping", request=None), owner)
    await rt.schedules.add(spec("b", request={"agent": "tidy", "text": "x", "repo": "/"}), owner)
    await rt.templates.remove("ping", owner)
    await clock.forward(HOUR)
    assert await _fire(wire(rt.settings.model_copy(update={"agents": {}}), rt.db, False)) == 2
    outcomes = {
        item.name: (item.last_status, item.last_reason) for item in await rt.schedules.all()
    }
    assert outcomes == {"a": (S.REFUSED, "template ping was removed"), "b": (S.FIRED, None)}
    assert (await rt.read_model.job(1)).agent_request.agent == "tidy"


async def test_a_schedule_keeps_the_version_of_a_removed_template(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    await rt.templates.add("ping", define(REQUEST), owner)
    await rt.schedules.add(spec("a", template="ping@1", request=None), owner)
    await rt.templates.remove("ping", owner)
    with pytest.raises(NotFound, match="template ping was removed"):
        await rt.templates.request("ping@1", EnteredForm())
    await clock.forward(HOUR)
    assert await _fire(rt) == 1
    (schedule,) = await rt.schedules.all()
    assert schedule.last_status is S.FIRED


async def test_parameters_that_a_new_version_refuses_are_refused(
    rt: Runtime, owner: Actor, clock: Clock
) -> None:
    first = await rt.templates.add("ping", define(REQUEST), owner)
    await rt.schedules.add(spec(template="ping", request=None), owner)
    await rt.schedules.add(spec("pinned", template="ping@1", request=None), owner)
    await rt.templates.edit(first, define(REQUEST | _schema()), owner)
    await clock.forward(HOUR)
    await _fire(rt)
    newest, pinned = await rt.schedules.all()
    assert newest.last_reason == "parameters of template ping: tag: is required"
    assert pinned.last_status is S.FIRED


async def test_a_person_without_the_role_schedules_nothing_more(
    rt: Runtime, people: People, clock: Clock
) -> None:
    await rt.schedules.add(spec("anna"), people.anna)
    await rt.schedules.add(spec("erin"), people.erin)
    known = dict(rt.policy.people)
    del known["erin"]
    known["anna"] = known["ben"]
    rt.policy.people = known
    await clock.forward(HOUR)
    await _fire(rt)
    reasons = [item.last_reason or "" for item in await rt.schedules.all()]
    assert reasons[0].startswith("anna may not submit (needs the role invoker)")
    assert reasons[1] == "erin is not a known person any more"


async def test_a_refused_job_refuses_no_other(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec("a"), owner)
    await rt.schedules.add(spec("b", request=REQUEST | {"subject_key": "s"}), owner)
    await rt.schedules.add(spec("c", request=REQUEST | {"subject_key": "s"}), owner)
    await rt.schedules.add(spec("d", request=REQUEST | {"notify": ["webhook:gone"]}), owner)
    await clock.forward(HOUR)
    await _fire(rt)
    outcomes = {
        item.name: (item.last_status, item.last_reason) for item in await rt.schedules.all()
    }
    assert outcomes["a"] == outcomes["b"] == (S.FIRED, None)
    assert outcomes["c"][0] is S.SKIPPED
    assert "which has the same subject" in str(outcomes["c"][1])
    assert outcomes["d"][0] is S.REFUSED
    assert "webhook" in str(outcomes["d"][1])


async def test_a_stepped_clock_fires_nothing_twice(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec(overlap=Overlap.QUEUE), owner)
    await clock.forward(HOUR)
    await _fire(rt)
    await clock.forward(-2 * HOUR)
    assert await _fire(rt) == 0
    await rt.schedules.pause("hourly", owner)
    await rt.schedules.resume("hourly", owner)  # computes the next occurrence in the past
    await clock.forward(2 * HOUR)
    await _fire(rt)
    history = await rt.schedules.history()
    times = [fire.due_at for fire in history]
    assert len(times) == len(set(times))
    jobs = [fire.job for fire in history if fire.job]
    assert len(jobs) == len({*jobs}) == len(await rt.read_model.jobs())


async def test_old_occurrences_are_forgotten(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec(), owner)
    async with rt.db.connection() as conn:
        await conn.execute(
            "INSERT INTO draftsman.schedule_fires (schedule, due_at, status, reason) SELECT s.id,"
            " draftsman.now() - n * interval '1 h', 'skipped', 'old' FROM draftsman.schedules s,"
            " generate_series(1, 1100) n"
        )
    await clock.forward(HOUR)
    await _fire(rt)
    async with rt.db.connection() as conn:
        count = await (
            await conn.execute("SELECT count(*) FROM draftsman.schedule_fires")
        ).fetchone()
    assert count == (1000,)


def test_the_jitter_of_an_occurrence_is_always_the_same(schedule_times: list[Any]) -> None:
    delays = [jitter(7, at, 300) for at in schedule_times]
    assert delays == [jitter(7, at, 300) for at in schedule_times]
    assert {jitter(8, at, 300) for at in schedule_times} != set(delays)
    assert all(timedelta() <= delay <= timedelta(seconds=300) for delay in delays)
    assert len({*delays}) > len(delays) / 2
    assert jitter(7, schedule_times[0], 0) == timedelta()


@pytest.fixture
async def schedule_times(rt: Runtime) -> list[Any]:
    """Give a hundred occurrences."""
    return await rt.schedules.preview(spec(), 100)


async def test_occurrences_with_jitter_keep_their_order(rt: Runtime, owner: Actor) -> None:
    schedule: Schedule = await rt.schedules.add(spec(jitter=3000, misfire=Misfire.ALL), owner)
    assert schedule.due_at is not None
    now = schedule.due_at + timedelta(hours=30, minutes=10)
    due, following = due_occurrences(schedule, now)
    assert [each.at for each in due] == sorted(each.at for each in due)
    assert following is not None
    assert following > due[-1].at
    assert schedule.fire_time(following) > now
