"""`run`: a job is submitted and followed to its end; `--now` reserves its queue."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio.subprocess import PIPE
from collections.abc import Callable

import pytest

from draftsman.errors import Failure
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.waits import background, until
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli, Terminal
from tests.tui.cli.conftest import As

PERMANENT = Failure("no such thing", declared="PERMANENT")
RUN = ("run", "--type", "noop", "--queue", "q", "--unchecked")


async def submitted(rt: Runtime) -> None:
    """Wait until the first job exists."""

    async def exists() -> bool:
        return bool(await rt.read_model.jobs())

    await until(exists, "a submitted job")


async def test_a_job_is_followed_to_its_end(cli: Cli, make: Factory, rt: Runtime) -> None:
    await make.worker_row(queues=["q"])
    async with background(cli(*RUN)) as running:
        await submitted(rt)
        work = await make.running(number=1)
        await rt.checkpoints.log(work.lease, 1, "one\ntwo\n")
        await rt.settlement.outcome(work, Done({"n": 1}))
        done = await asyncio.wait_for(running, DEADLINE)
    assert (done.code, done.out) == (0, "one\ntwo\nD-1 completed\n")
    shown = [re.sub(r"worker \w+", "worker W", line[10:]) for line in done.err.splitlines()[1:]]
    assert done.err.startswith("D-1 created\n")
    assert shown == [
        *("root submitted the job", "worker W claimed the job"),
        *("Run 1 started", "Run 1 completed the job"),
    ]


async def test_a_queue_without_a_worker_is_named_at_once(cli: Cli, make: Factory) -> None:
    hint = "no live worker serves the queue 'q'; to start a worker: draftsman worker --queue q"
    assert hint in (await cli(*RUN, "--timeout", "1s")).err
    await make.worker_row(queues=["q"])
    assert "no live worker" not in (await cli(*RUN, "--timeout", "1s")).err


async def test_json_has_the_job_and_its_reservation(cli: Cli, make: Factory, rt: Runtime) -> None:
    async with background(cli(*RUN, "--now", "--reserve-for", "30m", "--json")) as running:
        await submitted(rt)
        work = await make.running(number=1)
        await rt.checkpoints.log(work.lease, 1, "one\n")
        await rt.settlement.outcome(work, Done({"n": 1}))
        done = await asyncio.wait_for(running, DEADLINE)
    job = done.json
    assert (job["status"], job["result"], job["outcome"]) == ("completed", {"n": 1}, "created")
    assert (job["reservation"]["queue"], job["reservation"]["seconds"]) == ("q", 1800)
    assert "one\n" in done.err
    assert "the queue 'q' is reserved for it until " in done.err


async def test_the_outcome_is_the_exit_code(cli: Cli, make: Factory, rt: Runtime) -> None:
    async with background(cli(*RUN)) as running:
        await submitted(rt)
        await rt.settlement.failure(await make.running(number=1), PERMANENT)
        done = await asyncio.wait_for(running, DEADLINE)
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith("draftsman: D-1 ")
    assert "no such thing" in done.err.splitlines()[-1]


async def test_a_question_is_shown_with_its_command(
    make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal(*RUN)
    await submitted(rt)
    work = await make.running(number=1)
    await rt.checkpoints.log(work.lease, 1, "half a line")
    await rt.asking.ask(work.lease, QUESTION)
    screen.expect("Answer to D-1/1")
    lines = [line.strip() for line in screen.plain.splitlines()]
    hint = next(at for at, text in enumerate(lines) if "draftsman answer D-1/1" in text)
    assert "half a line" in lines[:hint], "the log comes before the question, on its own line"
    await make.answer(1, "red")
    work = await make.running(number=1)
    await rt.checkpoints.log(work.lease, 1, "the rest")
    await rt.settlement.outcome(work, Done({}))
    assert screen.end() == 0


async def test_ctrl_c_of_a_wait_says_that_the_job_continues(cli: Cli) -> None:
    submit = ("submit", *RUN[1:], "--wait")
    command = (*COMMAND, "--config", str(cli.config), *submit)
    running = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert running.stderr is not None
    while b"submitted the job" not in (await asyncio.wait_for(running.stderr.readline(), DEADLINE)):
        pass
    running.send_signal(signal.SIGINT)
    _, error = await asyncio.wait_for(running.communicate(), DEADLINE)
    assert running.returncode == 130
    assert error.startswith(b"D-1 continues; to follow it: draftsman logs -f D-1;")


async def test_ctrl_c_leaves_the_job_and_says_how_to_follow_it(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    command = (*COMMAND, "--config", str(cli.config), *RUN, "--now")
    running = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert running.stderr is not None
    first = await asyncio.wait_for(running.stderr.readline(), DEADLINE)
    assert first.startswith(b"D-1 created; the queue 'q' is reserved for it until ")
    while b"submitted the job" not in (await asyncio.wait_for(running.stderr.readline(), DEADLINE)):
        pass
    await rt.checkpoints.log((await make.running(number=1)).lease, 1, "half")
    assert running.stdout is not None
    assert await asyncio.wait_for(running.stdout.readexactly(4), DEADLINE) == b"half"
    running.send_signal(signal.SIGINT)
    out, error = await asyncio.wait_for(running.communicate(), DEADLINE)
    assert (running.returncode, out) == (130, b"\n"), "the line is ended"
    assert error.decode().splitlines()[-2:] == [
        "D-1 continues; to follow it: draftsman logs -f D-1; to cancel it: draftsman cancel D-1",
        "draftsman: interrupted",
    ]
    assert (await rt.read_model.job(1)).cancel_requested_at is None
    assert [item.job for item in await rt.reservations.all()] == [1]


async def test_a_timeout_ends_the_following(cli: Cli, make: Factory, rt: Runtime) -> None:
    done = await cli(*RUN, "--timeout", "0.2s")
    assert done.code == 1
    assert "D-1 is still queued after 0.2 s" in done.err.splitlines()[-1]


async def test_a_second_reservation_is_refused(
    cli: Cli, make: Factory, rt: Runtime, owner: Actor
) -> None:
    assert (await cli(*RUN, "--now", "--timeout", "0.1s")).code == 1
    (await cli(*RUN, "--now")).refused(
        1, "the queue 'q' is reserved by", "for D-1 until", "draftsman queues release q"
    )
    await rt.queues.pause("other", owner, "disk is full")
    other = ("run", "--type", "noop", "--queue", "other", "--unchecked", "--now")
    (await cli(*other)).refused(1, "the queue 'other' is paused by", "disk is full", "no job was")
    assert len(await rt.read_model.jobs()) == 1


async def test_a_joined_job_reserves_nothing(cli: Cli, make: Factory) -> None:
    await make.completed(queue="q", key="k")
    done = await cli(*RUN, "--key", "k", "--now")
    assert done.code == 0
    assert "D-1 deduplicated; its queue is not reserved, because the job existed" in done.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--reserve-for", "10m"), "--reserve-for requires --now"),
        (("--now", "--reserve-for", "10s"), "1m to 1d, not for 10s"),
        (("--now", "--in", "10m"), "starts later"),
        (("--at", "2030-12-31T18:00", "--in", "10m"), "--at and --in cannot be combined"),
    ],
)
async def test_options_that_contradict_are_refused(
    cli: Cli, options: tuple[str, ...], problem: str
) -> None:
    (await cli(*RUN, *options)).refused(2, problem)


async def test_queues_show_a_reservation_and_release_it(
    as_: As, cli: Cli, make: Factory, rt: Runtime
) -> None:
    waiting = await make.queued(queue="q")
    assert (await cli(*RUN, "--now", "--timeout", "0.1s")).code == 1
    assert "for D-2 until" in (await cli("queues")).out
    (summary,) = (await cli("queues", "--json")).json
    assert (summary["queued"], summary["held"], summary["reservation"]["job"]) == (1, 1, 2)
    why = (await cli("why", waiting)).out
    assert "the queue 'q' is reserved by" in why
    assert "draftsman queues release q" in why
    assert "its reserved queue" in (await cli("jobs")).out
    jobs = (await cli("jobs", "--queued", "--json")).json
    assert [(job["number"], job["hold"]) for job in jobs] == [(2, "no_worker"), (1, "reserved")]
    (await as_("anna")("queues", "release", "q", "--yes")).refused(1, "operator")
    (await cli("queues", "release", "q")).refused(2, "for D-2", "to confirm, use --yes")
    assert (await cli("queues", "release", "q", "-y", "--json")).json == {
        "queue": "q",
        "released": True,
        "job": 2,
    }
    (await cli("queues", "release", "q")).refused(1, "the queue 'q' is not reserved")
    history = (await cli("queues", "history", "q")).out
    assert "release" in history
    assert "for D-2" in history
    assert [job["number"] for job in (await cli("jobs", "--queued", "--json")).json] == [1, 2]


async def test_release_asks_on_a_terminal(
    cli: Cli, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    assert (await cli(*RUN, "--now", "--timeout", "0.1s")).code == 1
    screen = terminal("queues", "release", "q")
    screen.expect("End the reservation of the queue 'q'? root reserved it for")
    screen.type("y\n")
    assert screen.end() == 0
    assert await rt.reservations.all() == []
