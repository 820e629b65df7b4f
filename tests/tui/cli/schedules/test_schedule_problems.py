"""Schedules that cannot run: `doctor` warns, and `schedules show` gives the reason."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.described_types import registered
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As

NOOP = {"type": "noop"}


async def warnings(cli: Cli) -> dict[str, str]:
    """Return the findings of `doctor` about schedules, by name."""
    checks: list[dict[str, Any]] = (await cli("doctor", "--json")).json["checks"]
    return {
        check["name"]: f"{check['status']}: {check['text']}"
        for check in checks
        if check["name"].startswith("schedule")
    }


@pytest.fixture
async def nightly(rt: Runtime, owner: Actor, cli: Cli) -> None:
    """Give a schedule of the type `noop`."""
    await rt.schedules.add(ScheduleSpec("nightly", "@daily", request=NOOP), owner)


@pytest.mark.usefixtures("nightly")
async def test_a_schedule_without_a_problem(cli: Cli, make: Factory) -> None:
    assert "no worker is running" in (await cli("schedules", "show", "nightly")).out
    await make.worker_row(types=["noop"])
    assert await warnings(cli) == {
        "schedules": "ok: 1 schedule, no problem with the next occurrences"
    }
    assert "problem" not in (await cli("schedules", "show", "nightly")).out
    assert (await cli("schedules", "show", "nightly", "--json")).json["problem"] is None


@pytest.mark.usefixtures("nightly")
async def test_a_type_without_a_worker(cli: Cli, make: Factory) -> None:
    await make.worker_row(types=["report"])
    problem = "no live worker handles the type 'noop'"
    assert await warnings(cli) == {"schedule nightly": f"warn: {problem}"}
    assert problem in (await cli("schedules", "show", "nightly")).out
    await cli("schedules", "pause", "nightly")
    (paused,) = (await warnings(cli)).values()
    assert paused.startswith("warn: is paused since")


async def test_a_template_that_is_gone(
    cli: Cli, rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    await cli("templates", "add", "report", "--type", "noop", "Report")
    await rt.schedules.add(ScheduleSpec("nightly", "@daily", template="report"), owner)
    await conn.execute("SET session_replication_role = replica")
    await conn.execute("DELETE FROM draftsman.job_templates")
    assert "template 'report'" in (await warnings(cli))["schedule nightly"]
    assert "problem" in (await cli("schedules", "show", "nightly")).out


@pytest.mark.usefixtures("nightly")
async def test_an_author_without_the_role(
    cli: Cli, as_: As, conn: Connection, make: Factory
) -> None:
    await conn.execute("UPDATE draftsman.schedules SET created_by = 'ben'")
    assert (
        "its author ben no longer has the role invoker" in (await warnings(cli))["schedule nightly"]
    )


@pytest.mark.usefixtures("nightly")
async def test_a_refusal_of_the_leader(
    cli: Cli, rt: Runtime, make: Factory, conn: Connection, clock: Clock
) -> None:
    await make.worker_row(types=["noop"])
    await conn.execute("UPDATE draftsman.schedules SET created_by = 'nobody'")
    await clock.forward(86_400)
    await rt.sweeps.run("schedules", LeaderTerm())
    await conn.execute("UPDATE draftsman.workers SET heartbeat_at = draftsman.now()")
    problem = "its last occurrence was refused: nobody is not a known person"
    assert problem in (await warnings(cli))["schedule nightly"]
    assert problem in (await cli("schedules", "show", "nightly")).out


async def test_a_schedule_of_code_that_is_gone_is_named(cli: Cli, rt: Runtime) -> None:
    schedule = {"name": "report", "rule": "@daily", "zone": "UTC", "payload": {}}
    report = TypeDescription(
        name="report", place="company.reports:report", app="company", schedules=(schedule,)
    )
    stays = TypeDescription(name="count", place="company.stock:count", app="company")
    async with registered(rt, report, stays):
        await rt.declared_schedules.apply(LeaderTerm())
    async with registered(rt, stays):
        await rt.declared_schedules.apply(LeaderTerm())
        reason = "company no longer has report, which was company.reports:report"
        assert await warnings(cli) == {"schedule report": f"warn: is paused: {reason}"}
        assert "draftsman schedules remove report" in (await cli("doctor")).out
        assert reason in (await cli("schedules", "show", "report")).out
        (row,) = (await cli("schedules", "--json")).json
        assert row["pause_reason"] == reason
        await cli("schedules", "remove", "report", "--yes")
        assert await warnings(cli) == {}
