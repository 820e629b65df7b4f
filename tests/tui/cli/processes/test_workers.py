"""`workers`, `sweep` and `stats`."""

from __future__ import annotations

import os

import pytest

from draftsman.database.database import Connection
from draftsman.ids import worker_name
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.processes import host
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as registry
from draftsman_testing.factories import QUESTION, Factory
from tests.support.clock import Clock
from tests.support.statements import value
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


async def test_workers_are_listed_with_their_health(
    cli: Cli, make: Factory, conn: Connection
) -> None:
    assert "draftsman up" in (await cli("workers")).err
    assert (await cli("workers", "--json")).json == []
    here = {"host": "here", "host_id": host.identity(), "pid": os.getpid()}
    await make.worker_row(**here, pid_started=host.process_start_time(os.getpid()))
    killed = await make.worker_row(host="killed")
    silent = await make.worker_row(host="silent")
    lost = await make.worker_row(host="lost")
    for worker in (silent, lost):
        lock = "SELECT lock_id FROM draftsman.workers WHERE id = %s"
        await registry.hold(conn, await value(conn, lock, (worker,)))
    for worker, seconds in ((killed, 20), (silent, 100), (lost, 400)):
        await conn.execute(
            "UPDATE draftsman.workers"
            " SET heartbeat_at = draftsman.now() - make_interval(secs => %s)"
            " WHERE id = %s",
            (seconds, worker),
        )
    far = await make.worker_row(host="far", queues=["fast", "slow"], slots=7)
    rows = (await cli("workers", "--json")).json
    assert {row["host"]: row["health"] for row in rows} == {
        "here": "alive",
        "killed": "lost",  # silent for 15 s without its session
        "silent": "silent",
        "lost": "lost",
        "far": "alive",
    }
    output = (await cli("workers")).out.splitlines()
    assert output[0].split() == [
        *("WORKER", "HEALTH", "BUSY", "HEARTBEAT", "LEADER", "HOST", "PID", "QUEUES", "VERSION"),
        "STARTED",
    ]
    (listed,) = [line.split() for line in output if " far " in line]
    assert listed[:5] == [worker_name(far), "alive", "0", "of", "7"]
    assert listed[7:11] == ["far", "1", "fast,", "slow"]


async def test_every_command_counts_a_killed_worker_as_dead(
    cli: Cli, make: Factory, rt: Runtime, clock: Clock
) -> None:
    """Also before its lease ends: its session is closed, and it is silent for 15 s."""
    await make.worker_row()
    number = await make.queued(queue="default")
    assert "the next free slot claims it" in (await cli("why", f"D-{number}")).out
    await clock.forward(16)
    assert [row["health"] for row in (await cli("workers", "--json")).json] == ["lost"]
    why = (await cli("why", f"D-{number}")).out
    assert "no live worker serves the queue 'default'" in why
    assert "to start a worker: draftsman up" in why
    (job,) = (await cli("jobs", "--json")).json
    assert job["hold"] == "no_worker"
    assert "0  workers, 0 of 0 slots busy" in (await cli("stats")).out
    assert await rt.queues.serving() == []
    assert "no worker is running" in (await cli("doctor")).out


async def test_the_help_of_sweep_lists_every_sweep(cli: Cli, rt: Runtime) -> None:
    help_text = " ".join((await cli("sweep", "--help")).out.split())
    rows = [f"{sweep.name} {sweep.description}" for sweep in rt.sweeps.all]
    assert " ".join(["Sweeps:", *rows, "Examples:"]) in help_text


async def test_a_manual_sweep_reports_its_count(
    as_: As, cli: Cli, make: Factory, rt: Runtime
) -> None:
    await make.asked(QUESTION.model_copy(update={"expires_in": 0.000001}))
    assert (await cli("sweep", "expire", "--json")).json == {"sweep": "expire", "changed": 1}
    for name in rt.sweeps.names:
        done = await cli("sweep", name)
        assert done.code == 0
        assert done.out.startswith(f"{name}: changed ")
    (await cli("sweep", "clean")).refused(2, ", ".join(rt.sweeps.names))
    (await as_("anna")("sweep", "expire")).refused(1, "may not sweep", "olga")


@pytest.mark.parametrize("empty", [True, False])
async def test_overview_counts_are_printed(cli: Cli, make: Factory, empty: bool) -> None:
    if not empty:
        await make.queued()
        await make.asked()
        await make.answer((await make.asked()).number, "red")
    stats = (await cli("stats", "--json")).json
    output = (await cli("stats")).out
    if empty:
        assert set(stats["jobs"].values()) == {0}
        assert "0  jobs" in output
        return
    assert (stats["jobs"]["queued"], stats["jobs"]["waiting_for_input"]) == (1, 1)
    assert (stats["open_questions"], stats["answers_last_day"]) == (1, 1)
    assert "1  waiting for input" in output
    assert "1  open question; the next expires in 24 h\n" in output
    assert "1  answer in the last 24 hours, median" in output


@pytest.mark.machine_clock("events have the time of the server")
async def test_throughput_is_printed_by_queue_type_and_repository(cli: Cli, make: Factory) -> None:
    assert "PERIOD" not in (await cli("stats")).out
    await make.completed(queue="work", repo="https://git.example/acme/pay")
    await make.failed(queue="work")
    printed = (await cli("stats", "--last", "hour")).out.splitlines()
    caption, *table = printed[printed.index("") + 1 :]
    assert caption == "Jobs that ended; FAILED also counts those retried or dismissed since:"
    rows = [line.split() for line in table]
    assert rows[0][:7] == ["PERIOD", "KIND", "NAME", "ENDED", "FAILED", "HOURLY", "WAITED"]
    assert [row[:4] for row in rows[1:4]] == [[p, "all", "2", "1"] for p in ("hour", "day", "week")]
    assert [row[4] for row in rows[1:4]] == ["2.0", "0.083", "0.012"]
    assert [row[:5] for row in rows[4:]] == [
        ["hour", "queue", "work", "2", "1"],
        ["hour", "type", "noop", "2", "1"],
        ["hour", "repo", "git.example/acme/pay", "1", "0"],
    ]
    listed = (await cli("stats", "--json")).json["throughput"]
    assert {(row["period"], row["by"]): row["finished"] for row in listed}["week", "all"] == 2
    (await cli("stats", "--people", "--last", "day")).refused(2, "use --since")


async def test_figures_of_people_are_printed(cli: Cli, make: Factory, as_: As, rt: Runtime) -> None:
    assert "no questions in this time" in (await cli("stats", "--people")).err
    asked = (await make.asked(QUESTION)).number
    assert f"D-{asked}/1" in (await as_("ben")("questions")).out
    assert (await as_("ben")("questions", "--json")).code == 0
    await make.answer(asked, "red", rt.policy.resolve(Actor(Source.CLI, "ben", "Ben")))
    printed = await cli("stats", "--people", "--since", "1h")
    columns = [line.split() for line in printed.out.splitlines()]
    assert [line[:2] if line[0] == "all" else line[:3] for line in columns] == [
        ["KIND", "NAME", "ANSWERS"],
        ["all", "1"],
        ["person", "ben", "1"],
        ["channel", "cli", "1"],
        ["kind", "questions", "1"],
    ]
    assert "1 question of 1 job, 1.0 per job; interruptions in quiet hours: 0" in printed.err
    (person,) = [
        row for row in (await cli("stats", "--people", "--json")).json if row["by"] == "person"
    ]
    assert (person["value"], person["answers"], person["pings"]) == ("ben", 1, 0)
    assert 0 <= person["seen_p50"] < person["answer_p50"], "seen in the list, before the answer"
    assert person["seen_p95"] == person["seen_p50"], "of a single question"
    (await cli("stats", "--since", "1h")).refused(2, "--since and --until require --people")


async def test_a_question_is_acknowledged_and_snoozed(cli: Cli, make: Factory, as_: As) -> None:
    number = (await make.asked(QUESTION)).number
    ben = as_("ben")
    for delay in ((), ("4h",), ("--for", "4h")):
        assert ": no reminders for you" in (await ben("snooze", f"D-{number}/1", *delay)).out
    for name in ("ack", "snooze"):
        twice = await ben(name, f"D-{number}/1", "4h", "--for", "4h")
        twice.refused(2, "the duration was given twice; use --for alone")
    assert "acknowledged until" in (await ben("ack", f"D-{number}/1")).out
    for command in (("questions",), ("show", f"D-{number}")):
        shown = (await cli(*command)).out
        assert "acknowledged by ben until" in shown
        assert "snoozed by ben until" in shown
    (await cli("ack", f"D-{number}/1")).refused(1, "ben works on it until")
    (await ben("ack", f"D-{number}/1", "--for", "2d")).refused(2, "allowed: 1s to 1d")
    (await as_("carol")("snooze", f"D-{number}/1", "1h")).refused(1, "may not answer")
    again = (await ben("ack", f"D-{number}/1", "--for", "3h", "--json")).json
    assert (again["job"], again["ordinal"]) == (number, 1)
