"""Schedules that job types declare: with the code that is deployed, beside those of people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

import pytest

from draftsman import Every, RunContext, job
from draftsman.errors import ConfigError, Refused, UsageError
from draftsman.job_types import declaration
from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import CODE, DECLARED_BY, Schedule, ScheduleSpec
from tests.support.clock import Clock
from tests.support.described_types import registered

TERM = LeaderTerm(uuid4(), None)


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGE", 0)
    monkeypatch.setattr(declaration, "declared_types", {})


def described(*schedule: Every, name: str = "report:weekly", **fields: Any) -> TypeDescription:
    declaration.declared_types.clear()

    @job(name, title="Report of {region}", schedule=schedule, **fields)
    async def weekly(ctx: RunContext, region: Literal["eu", "us"], week: int = 0) -> None: ...

    return weekly.description


async def applied(rt: Runtime) -> dict[str, Schedule]:
    await rt.declared_schedules.apply(TERM)
    assert await rt.declared_schedules.apply(TERM) == 0  # nothing is left to do
    return {schedule.name: schedule for schedule in await rt.schedules.all()}


def test_what_cannot_work_is_an_error_at_the_declaration() -> None:
    for every, problem in [
        (Every("monday at 7"), "region: is required"),
        (Every("monday at 7", region="de"), "region 'de': must be 'eu' or 'us'"),
        (Every("monday at 7", region="eu", weak=1), "weak: unknown key; allowed: region, week"),
        (Every("mondey at 7", region="eu"), "examples: every weekday at 9"),
        (Every("monday at 7", zone="Europe/Berlino", region="eu"), "did you mean Europe/Berlin"),
        (Every("61 * * * *", region="eu"), "invalid minute"),
    ]:
        with pytest.raises(ConfigError, match=f"report:weekly: schedule .*{problem}"):
            described(every)
    same = Every("day at 7", suffix="x", region="eu")
    with pytest.raises(ConfigError, match="report:weekly-x is declared twice; use suffix="):
        described(same, same)
    with pytest.raises(ConfigError, match="at most 63"):
        described(Every("day at 7", region="eu"), name="r" * 64)


async def test_schedules_are_created_and_changed_with_the_code(rt: Runtime) -> None:
    first = described(
        Every("monday at 7:00", zone="Europe/Berlin", region="us"),
        Every("0 9 * * *", region="eu", week=3),
    )
    async with registered(rt, first):
        schedules = await applied(rt)
        assert sorted(schedules) == ["report:weekly", "report:weekly-2"]
        weekly = schedules["report:weekly"]
        assert (weekly.rule, weekly.timezone) == ("0 7 * * mon", "Europe/Berlin")
        assert weekly.request == {"type": "report:weekly", "payload": {"region": "us"}}
        assert (weekly.origin, weekly.created_by) == (CODE, DECLARED_BY)
        assert weekly.due_at is not None
        changed = described(
            Every("monday at 8:00", region="us"), Every("0 9 * * *", region="eu", week=3)
        )
        async with registered(rt, changed):
            schedules = await applied(rt)
            assert (schedules["report:weekly"].rule, schedules["report:weekly"].timezone) == (
                "0 8 * * mon", "UTC",
            )  # fmt: skip
            assert schedules["report:weekly"].id == weekly.id
        assert (await applied(rt))["report:weekly"].rule == "0 7 * * mon"  # rolled back


async def test_a_removed_schedule_is_paused_and_named_until_it_is_declared_again(
    rt: Runtime, owner: Actor
) -> None:
    with_schedule = described(Every("day at 7", region="us"))
    without = described()
    async with registered(rt, with_schedule):
        await applied(rt)
    assert (await applied(rt))["report:weekly"].paused_at is None  # all workers are restarted
    async with registered(rt, without):
        paused = (await applied(rt))["report:weekly"]
        assert (paused.paused_by, paused.pause_reason) == (
            DECLARED_BY, "the code of report:weekly no longer declares it",
        )  # fmt: skip
    async with registered(rt, replace(with_schedule, title="new")):
        resumed = (await applied(rt))["report:weekly"]
        assert (resumed.paused_at, resumed.due_at is None) == (None, False)
        with pytest.raises(Refused, match="declared by the code of report:weekly; remove it there"):
            await rt.schedules.remove("report:weekly", owner)
    async with registered(rt, replace(described(name="report:daily"), place=with_schedule.place)):
        assert (await applied(rt))["report:weekly"].paused_by == DECLARED_BY  # its type is gone
    await rt.schedules.remove("report:weekly", owner)


async def test_the_schedules_of_a_module_that_left_the_app_are_paused_and_named(
    rt: Runtime,
) -> None:
    reports = replace(described(Every("day at 7", region="us")), place="company.reports:weekly")
    stays = replace(described(name="count"), place="company.stock:count")
    elsewhere = replace(
        described(Every("day at 8", region="eu"), name="other"), place="other.jobs:run", app="other"
    )

    def of_app(app: str, *types: TypeDescription) -> list[TypeDescription]:
        return [replace(type, app=app) for type in types]

    async with registered(rt, elsewhere), registered(rt, *of_app("company", reports, stays)):
        await applied(rt)
    async with registered(rt, *of_app("company", stays)):
        schedules = await applied(rt)
        weekly = schedules["report:weekly"]
        assert (weekly.paused_by, weekly.pause_reason) == (
            DECLARED_BY,
            "company no longer has report:weekly, which was company.reports:weekly",
        )
        assert schedules["other"].paused_at is None  # another app, without a worker now
        async with registered(rt, *of_app("company", reports, stays)):
            assert (await applied(rt))["report:weekly"].paused_at is None
    async with registered(rt, *of_app("", reports)), registered(rt, *of_app("", stays)):
        assert (await applied(rt))["report:weekly"].paused_at is None
    async with registered(rt, *of_app("", stays)):  # workers without an app have their own packages
        assert (await applied(rt))["report:weekly"].paused_at is None


async def test_the_pause_of_a_person_is_kept(rt: Runtime, owner: Actor) -> None:
    async with registered(rt, described(Every("day at 7", region="us"))):
        await applied(rt)
        await rt.schedules.pause("report:weekly", owner, "freeze")
        assert (await applied(rt))["report:weekly"].pause_reason == "freeze"
        async with registered(rt, described(Every("day at 8", region="us"))):
            changed = (await applied(rt))["report:weekly"]
        assert (changed.rule, changed.paused_by) == ("0 8 * * *", "root")


async def test_schedules_of_people_stay_as_they_are(
    rt: Runtime, owner: Actor, caplog: pytest.LogCaptureFixture
) -> None:
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    for name in ("report:weekly", "other"):
        await rt.schedules.add(ScheduleSpec(name, "@hourly", request=request), owner)
    async with registered(rt, described(Every("day at 7", region="us"))):
        schedules = await applied(rt)
    assert {schedule.created_by for schedule in schedules.values()} == {"root"}
    assert "root added one of this name; remove that, or use suffix= in the code" in caplog.text


async def test_the_origin_of_declared_schedules_is_that_of_no_file(rt: Runtime) -> None:
    with pytest.raises(UsageError, match="'code' is that of schedules of job types"):
        await rt.schedules.plan([], CODE)


async def test_a_person_does_not_change_what_the_code_declares(rt: Runtime, owner: Actor) -> None:
    async with registered(rt, described(Every("day at 7", region="us"))):
        spec = (await applied(rt))["report:weekly"].spec()
        with pytest.raises(Refused, match="declared by the code of report:weekly; change it there"):
            await rt.schedules.change(replace(spec, rule="@hourly"), owner)


async def test_a_declared_schedule_submits_jobs_that_no_person_requested(
    rt: Runtime, clock: Clock
) -> None:
    async with registered(rt, described(Every("90m", region="us"))):
        await applied(rt)
        await clock.forward(91 * 60)
        await rt.firing.fire(TERM)
    (summary,) = await rt.read_model.jobs()
    job = await rt.read_model.job(summary.number)
    assert (job.type, job.payload, job.title) == (
        "report:weekly", {"region": "us"}, "Report of us",
    )  # fmt: skip
    assert (job.source, job.invoker_id) == ("schedule", DECLARED_BY)
