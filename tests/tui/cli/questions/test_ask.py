"""`ask` and `approve-action` outside a run: a job that holds the question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.core.worker.workers import running_worker, runtime_with
from tests.tui.cli.cli_runner import Cli, Terminal


@asynccontextmanager
async def worker(rt: Runtime) -> AsyncIterator[None]:
    async with running_worker(runtime_with(rt), registry.load({}), leader=True):
        yield


async def newest(rt: Runtime) -> int:
    """Return the newest job, once it waits for an answer."""
    found: list[int] = []

    async def asked() -> bool:
        found[:] = [job.number for job in await rt.read_model.jobs(limit=1)]
        return bool(found) and bool(await rt.questions.open(found[0]))

    await until(asked, "a question")
    return found[0]


async def respond(rt: Runtime, number: int, **response: Any) -> None:
    person = Actor(Source.CLI, "root", "root", owner=True)
    given = Response(source_event_id=f"test:{number}", **response)
    assert (await rt.questions.answer(number, 1, given, person)).accepted


async def test_the_answer_is_printed(cli: Cli, rt: Runtime) -> None:
    async with worker(rt):
        asked = cli("ask", "Deploy?\nTo production", "--choice", "yes", "--choice", "no")
        async with background(asked) as asking:
            number = await newest(rt)
            await respond(rt, number, text="2")
            done = await asking
    assert (done.code, done.out) == (0, "no\n")
    job = await rt.read_model.job(number)
    assert (job.type, job.title, job.status) == ("ask_people", "Deploy?", Status.COMPLETED)
    continued = await cli("ask", "--continue", number, "--json")
    assert (continued.json["job"], continued.json["outcome"], continued.json["value"]) == (
        number,
        "answered",
        "no",
    )
    assert continued.json["by"]


async def test_an_approval_has_an_exit_code_for_each_decision(cli: Cli, rt: Runtime) -> None:
    asked = ("approve-action", "Push?", "--action", '{"push": "app:1"}')
    async with worker(rt):
        async with background(cli(*asked)) as asking:
            await respond(rt, await newest(rt), decision=Decision.APPROVE)
            approved = await asking
        async with background(cli(*asked)) as asking:
            await respond(rt, await newest(rt), decision=Decision.DENY, reason="not today")
            denied = await asking
    assert (approved.code, approved.out) == (0, "")
    assert denied.code == 1
    assert denied.err.endswith(": not today\n")


async def test_a_question_outlives_the_wait_and_the_same_key_continues_it(
    cli: Cli, rt: Runtime
) -> None:
    asked = ("ask", "Which name?", "--key", "name-1")
    async with worker(rt):
        first = await cli(*asked, "--wait", "1s", "--json")
        number = await newest(rt)
        hint = f"draftsman ask --continue D-{number}"
        assert (first.code, hint in first.err) == (5, True)
        async with background(cli(*asked)) as asking:
            await respond(rt, number, text="lucia")
            done = await asking
    assert (done.code, done.out) == (0, "lucia\n")
    assert len(await rt.read_model.jobs()) == 1


async def test_an_interrupt_leaves_the_question_and_names_the_command(
    rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    async with worker(rt):
        asking = terminal("ask", "Which name?")
        number = await newest(rt)
        await asyncio.to_thread(asking.expect, f"draftsman answer D-{number}/1")
        asking.type("\x03")
        assert await asyncio.to_thread(asking.end) == 130
        assert f"draftsman ask --continue D-{number}" in " ".join(asking.plain.split())
        assert await rt.questions.open(number)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "TEXT is required"),
        (("Which?", "--continue", "D-1"), 2, "--continue takes no TEXT"),
        (("--continue", "D-999999"), 3, "D-999999"),
        (("Which?", "--choice", "a", "--choice", "a"), 2, "two choices have the same value"),
        (("Which?", "--choice", "a", "--default", "b"), 2, "not among the choices"),
    ],
)
async def test_an_invalid_question_is_refused_in_a_line(
    cli: Cli, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (await cli("ask", *arguments)).refused(code, message)


async def test_another_job_is_no_question(cli: Cli, make: Factory) -> None:
    number = await make.job_in(Status.COMPLETED)
    (await cli("ask", "--continue", number)).refused(1, f"D-{number} is a job of the type")


async def test_an_expired_question_is_no_answer(cli: Cli, rt: Runtime) -> None:
    async with worker(rt):
        done = await cli("ask", "Which name?", "--expires-in", "0.1s")
    assert (done.code, done.out) == (5, "")
    assert done.err.endswith("expired without an answer\n")


async def test_without_a_worker_it_says_so_at_once(cli: Cli) -> None:
    done = await cli("ask", "Which name?", "--wait", "0.1s")
    assert done.code == 5
    assert "to start a worker: draftsman" in done.err


@pytest.mark.parametrize("command", [("note", "x"), ("progress", "1/2")])
async def test_reports_outside_of_a_run_are_refused(
    cli: Cli, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (await cli(*command)).refused(2, "works only inside a run")
    monkeypatch.setenv("DRAFTSMAN_SOCKET", "/no/such/run.sock")
    (await cli(*command)).refused(1, "cannot connect to the run at /no/such/run.sock")
    (await cli("ask", "Which?", "--notify", "log")).refused(2, "only outside a run")
    (await cli("approve-action", "Push?", "--wait", "1m")).refused(2, "the run parks")
