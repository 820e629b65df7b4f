"""The undo window of answers on a terminal, and the `undo` command."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionStatus
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.statements import run
from tests.tui.cli.cli_runner import Cli, Terminal

WINDOW = 60
HELD = {"DRAFTSMAN_QUESTIONS__UNDO": str(WINDOW)}


async def test_an_answer_on_a_terminal_can_be_undone_until_it_counts(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal], rt: Runtime, conn: Connection
) -> None:
    """A leader applies it, so that the command ends at once."""
    await run(
        conn,
        "INSERT INTO draftsman.leases (name, owner, term, expires_at) VALUES"
        " ('leader', gen_random_uuid(), 1, draftsman.now() + interval '1 h')",
    )
    job = await make.asked()
    name = f"{job.name}/1"
    screen = terminal("answer", name, "red", **HELD)
    assert screen.end() == 0, screen.plain
    said = " ".join(screen.plain.split())
    assert f"{name} answered: red, counts at " in said
    assert f"; to undo: draftsman undo {name}" in said
    assert (await rt.questions.get(job.number, 1)).status is QuestionStatus.OPEN
    undone = await cli("undo")
    assert undone.out == (
        f"{name} undone: it does not count; to answer again: draftsman answer {name}\n"
    )
    assert "has no answer of yours that can be undone" in (await cli("undo", name)).refused(1)
    (await cli("undo")).refused(1, "can be undone for 10 s; all others, such as those of scripts")
    (await cli("undo", job.name)).refused(1, f"{job.name} has no answer or cancel of yours")
    assert (await cli("answer", name, "red")).out.startswith(
        f"{name} answered: red; job "
    )  # no terminal
    late = (await cli("undo", name)).refused(1, f"{name} was answered by root", "can no longer be")
    assert f"to see what the job does now: draftsman show {job.name}" in late


async def test_wait_asks_no_question_that_was_just_answered(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal], rt: Runtime, conn: Connection
) -> None:
    await run(
        conn,
        "INSERT INTO draftsman.leases (name, owner, term, expires_at) VALUES"
        " ('leader', gen_random_uuid(), 1, draftsman.now() + interval '1 h')",
    )
    job = await make.asked()
    name = f"{job.name}/1"
    assert terminal("answer", name, "red", **HELD).end() == 0
    screen = terminal("wait", "--timeout", "2s", job.name, **HELD)
    screen.end()
    said = " ".join(screen.plain.split())
    assert f"{name}: your answer counts at " in said
    assert f"to undo: draftsman undo {name}" in said
    assert "Pick" not in said, said


async def test_times_are_local_unless_utc_is_wanted(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{(await make.asked()).name}/1"
    await cli("answer", name, "red")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        (await cli("undo", name)).refused(1, " IST; it can no longer be undone")
        (await cli("undo", name, "--utc")).refused(1, " UTC; it can no longer be undone")
    time.tzset()


async def test_an_answer_counts_although_its_terminal_was_killed(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal], rt: Runtime, clock: Clock
) -> None:
    job = await make.asked()
    screen = terminal("answer", f"{job.name}/1", "red", **HELD)
    screen.expect("no worker runs: waiting until it counts")
    os.kill(screen.pid, signal.SIGKILL)
    assert (await rt.questions.get(job.number, 1)).status is QuestionStatus.OPEN
    await clock.forward(WINDOW)
    await cli("sweep", "decisions")
    answered = await rt.questions.get(job.number, 1)
    assert (answered.status, answered.answer_text()) == (QuestionStatus.ANSWERED, "red")


async def test_a_cancel_of_another_place_is_undone_as_json(
    cli: Cli, make: Factory, rt: Runtime, people: People, owner: Actor
) -> None:
    """Also the newest of several, and none of another person."""
    job, other, canceled = [(await make.asked()).number for _ in range(3)]
    for number, actor in ((job, owner), (other, people.ben)):
        response = Response(source_event_id="key", text="red")
        await rt.pending_decisions.answer(number, 1, response, actor, WINDOW)
    await rt.pending_decisions.cancel(canceled, owner, None, force=False, event="c", window=WINDOW)
    document = (await cli("undo", "--json")).json
    assert (document["job"], document["ordinal"]) == (canceled, None)
    assert (await cli("undo", f"D-{job}")).out.startswith(f"D-{job}/1 undone: it does not count")
    (await cli("undo", f"D-{other}/1")).refused(1, "has no answer of yours")
