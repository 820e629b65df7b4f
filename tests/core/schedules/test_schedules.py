"""Definitions of schedules: who changes them, pauses, and runs by hand."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import Conflict, NotFound, NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import FireStatus, Misfire, ScheduleSpec
from draftsman.schedules.template import define
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.clock import Clock

REQUEST = {"type": "http_request", "payload": {"url": "https://example.org/"}}


def spec(name: str = "hourly", rule: str = "0 * * * *", **fields: Any) -> ScheduleSpec:
    fields = {"request": REQUEST} | fields
    return ScheduleSpec(name, rule, **fields)


async def test_a_schedule_is_stored_with_its_next_occurrence(rt: Runtime, owner: Actor) -> None:
    schedule = await rt.schedules.add(spec(timezone="Asia/Kathmandu", jitter=600), owner)
    now = await rt.schedules.now()
    assert schedule.due_at is not None
    assert schedule.fire_at is not None
    assert (schedule.due_at.minute, schedule.due_at > now) == (15, True)
    assert 0 <= (schedule.fire_at - schedule.due_at).total_seconds() <= 600
    assert schedule.fire_at == schedule.fire_time(schedule.due_at)
    upcoming = await rt.schedules.upcoming("hourly", 3)
    assert upcoming[0] == schedule.due_at
    assert (upcoming[2] - upcoming[1]).total_seconds() == 3600
    assert await rt.schedules.all() == [schedule]
    with pytest.raises(Conflict, match="schedule hourly exists"):
        await rt.schedules.add(spec(), owner)


@cases(
    ("fields", "problem"),
    [
        ({"name": "a b"}, "allowed: letters"),
        ({"rule": "61 * * * *"}, "invalid minute"),
        ({"timezone": "Mars/Base"}, "unknown time zone"),
        ({"request": None}, "needs a template or a request"),
        ({"template": "x"}, "needs a template or a request"),
        ({"misfire_limit": 0}, "must be 1 to 1000"),
        ({"jitter": 90_000}, "0s to 24h"),
        ({"jitter": 3600}, "shorter than 60 min"),
        ({"rule": "@at 2001-01-01T00:00Z"}, "has passed"),
        ({"request": {"type": "http_request"}}, "url"),
        ({"request": {"agent": "tidy"}}, "instructions are required"),
    ],
)
async def test_an_invalid_schedule_is_refused(
    rt: Runtime, owner: Actor, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        await rt.schedules.add(spec(**fields), owner)
    assert await rt.schedules.all() == []


async def test_a_pause_lasts_until_the_resume(rt: Runtime, owner: Actor, clock: Clock) -> None:
    await rt.schedules.add(spec(), owner)
    paused = await rt.schedules.pause("hourly", owner, " freeze ")
    assert (paused.paused_by, paused.pause_reason) == ("root", "freeze")
    with pytest.raises(Refused, match="is paused already, by root"):
        await rt.schedules.pause("hourly", owner)
    await clock.forward(5 * 3600)
    assert await rt.sweeps.run_now("schedules", owner) == 0
    resumed = await rt.schedules.resume("hourly", owner)
    assert resumed.paused_at is None
    assert resumed.due_at is not None
    assert resumed.due_at > await rt.schedules.now()
    assert await rt.sweeps.run_now("schedules", owner) == 0
    assert await rt.schedules.history() == []
    with pytest.raises(Refused, match="is not paused"):
        await rt.schedules.resume("hourly", owner)


async def test_a_run_by_hand_is_in_the_history(rt: Runtime, people: People) -> None:
    await rt.schedules.add(spec(), people.anna)
    job = await rt.schedules.run("hourly", people.erin)
    stored = await rt.read_model.job(job.number)
    assert (stored.source, stored.invoker_id) == (Source.CLI, "erin")
    [fire] = await rt.schedules.history("hourly")
    assert (fire.job, fire.status, fire.reason) == (job.number, FireStatus.FIRED, "run by erin")
    with pytest.raises(NotPermitted, match="may not submit"):
        await rt.schedules.run("hourly", people.ben)


async def test_a_change_replaces_definition_and_author(rt: Runtime, people: People) -> None:
    erin = people.erin
    await rt.schedules.add(spec(), erin)
    await rt.templates.add("ping", define(REQUEST), people.olga)
    fields: dict[str, Any] = {"request": None, "template": "ping", "misfire": Misfire.ALL}
    changed = await rt.schedules.change(spec(rule="@daily", **fields), erin)
    assert (changed.rule, changed.template, changed.misfire) == ("@daily", "ping", Misfire.ALL)
    assert (changed.request, changed.target) == (None, "ping")


async def test_authors_and_operators_change_a_schedule(rt: Runtime, people: People) -> None:
    await rt.schedules.add(spec(), people.anna)
    for actor in (people.erin, people.ben, people.mallory):
        for change in (
            rt.schedules.pause("hourly", actor),
            rt.schedules.resume("hourly", actor),
            rt.schedules.remove("hourly", actor),
        ):
            with pytest.raises(NotPermitted, match="may not change schedules"):
                await change
    for add in (rt.schedules.add(spec("x"), people.ben), rt.schedules.change(spec(), people.olga)):
        with pytest.raises(NotPermitted, match="may not submit"):
            await add
    await rt.schedules.pause("hourly", people.olga)
    await rt.schedules.resume("hourly", people.anna)
    await rt.schedules.remove("hourly", people.olga)
    with pytest.raises(NotFound, match="unknown schedule 'hourly'"):
        await rt.schedules.get("hourly")


async def test_an_unknown_name_is_refused_with_near_names(rt: Runtime, owner: Actor) -> None:
    await rt.schedules.add(spec(), owner)
    for call in (
        rt.schedules.get("houly"),
        rt.schedules.history("houly"),
        rt.schedules.upcoming("houly", 1),
        rt.schedules.pause("houly", owner),
        rt.schedules.run("houly", owner),
    ):
        with pytest.raises(NotFound, match="unknown schedule 'houly'; did you mean hourly"):
            await call


async def test_preview_needs_no_schedule(rt: Runtime) -> None:
    first, second = await rt.schedules.preview(spec(rule="30 4 * * *"), 2)
    assert (second - first).days == 1
