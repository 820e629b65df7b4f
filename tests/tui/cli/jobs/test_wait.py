"""`wait`: the outcome of the job is the exit code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import background
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (Status.FAILED, 1, "failed: no such thing"),
        (Status.DEAD_LETTER, 1, "is a dead letter: gone"),
        (Status.CANCELED, 1, "was canceled"),
        (Status.EXPIRED, 5, "no answer in time"),
    ],
)
async def test_an_unsuccessful_end_has_its_exit_code(
    cli: Cli, make: Factory, status: Status, code: int, message: str
) -> None:
    number = await make.job_in(status)
    done = await cli("wait", number)
    done.refused(code, f"D-{number} ", message)
    assert done.out == f"D-{number} {status.replace('_', ' ')}\n"


async def test_several_jobs_are_waited_for(cli: Cli, make: Factory, rt: Runtime) -> None:
    works = [await make.running(tags=("nightly",), type="noop") for _ in range(2)]
    first, second = works
    for selected in (
        [first.name, second.name],
        [f"{first.name}..{second.name}", str(first.number)],
        ["--tag", "nightly"],
        ["--mine", "--type", "noop"],
    ):
        done = await cli("wait", *selected, "--timeout", "0.05s")
        done.refused(1, " is still running after", "; 1 more job did not complete")
    async with background(cli("wait", first.name, second.name)) as waiting:
        await rt.settlement.outcome(second, Done())
        await rt.settlement.failure(first, Failure("no such thing", declared="PERMANENT"))
        done = await waiting
    assert done.out.splitlines() == [f"{second.name} completed", f"{first.name} failed"]
    done.refused(1, f"{first.name} failed: no such thing")
    listed = await cli("wait", f"{first.name}..{second.name}", "--json")
    assert listed.code == 1
    assert [job["status"] for job in json.loads(listed.out)] == ["failed", "completed"]
    assert (await cli("wait", second.name, second.name)).code == 0
    nothing = await cli("wait", "--tag", "nightly")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no unfinished jobs match" in nothing.err
    assert "did you mean nightly?" in (await cli("wait", "--tag", "nigtly")).err
    (await cli("wait")).refused(2, "name jobs, or filter them")
    (await cli("wait", first.name, "--tag", "nightly")).refused(2, "name jobs, or filter them")


async def test_a_group_is_waited_for(cli: Cli, make: Factory) -> None:
    group = {"name": "release", "kind": "parallel"}
    numbers = [await make.completed(group=group) for _ in range(2)]
    done = await cli("wait", "--group", "release")
    assert done.out.splitlines() == [f"D-{number} completed" for number in numbers]
    (await cli("wait", "--group", "relase")).refused(3, "there is no group 'relase'")


async def test_wait_ends_at_the_completion(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()
    async with background(cli("wait", work.name, "--json")) as waiting:
        await rt.settlement.outcome(work, Done({"n": 1}))
        done = await waiting
    assert (done.json["status"], done.json["result"]) == ("completed", {"n": 1})
    assert (await cli("wait", work.name)).out == f"{work.name} completed\n"


async def test_wait_asks_on_a_terminal_and_ends_with_the_changes(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.asked()
    screen = terminal("wait", work.name)
    screen.expect(f"Answer to {work.name}/1 (enter: not now): ")
    assert "Which one?" in screen.plain
    screen.type("green\n")
    screen.expect("'green' is not a choice")
    screen.type("2\n")
    screen.expect("answered: blue")
    work = await make.running(work.number)
    patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    await rt.changes.store(work.lease, patch)
    await rt.settlement.outcome(work, Done({"summary": "All is tidy", "branch": "draftsman/D-1"}))
    assert screen.end() == 0
    end = screen.plain.split("completed")[-1]
    for word in ("All is tidy", "branch draftsman/D-1", "1 file changed", "draftsman diff D-1"):
        assert word in end


async def test_a_question_left_open_or_closed_elsewhere_ends_the_prompt_of_wait(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime, people: People
) -> None:
    work = await make.asked()
    screen = terminal("wait", work.name)
    screen.expect("(enter: not now)")
    screen.type("\n")
    screen.expect(f"{work.name}/1 stays open; to answer it:")
    await make.answer(work.number, "red")
    work = await make.running(work.number)
    await rt.asking.ask(work.lease, QUESTION.model_copy(update={"key": "next"}))
    screen.expect(f"Answer to {work.name}/2 (enter: not now): ")
    screen.type("blue")
    screen.expect("blue")
    await make.answer(work.number, "red", people.ben, n=2)
    screen.expect("answered by ben: red")
    work = await make.running(work.number)
    await rt.asking.ask(work.lease, QUESTION.model_copy(update={"key": "last"}))
    screen.expect(f"Answer to {work.name}/3 (enter: not now): ")
    screen.type("\n")  # the text for the second question is no answer to the third
    screen.expect(f"{work.name}/3 stays open; to answer it:")
    await make.answer(work.number, "red", n=3)
    await rt.settlement.outcome(await make.running(work.number), Done({"text": "sent"}))
    assert screen.end() == 0
    assert "text  sent" in screen.plain


async def test_the_message_after_an_interrupt_has_its_own_line(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    work = await make.asked()
    screen = terminal("wait", work.name)
    screen.expect("(enter: not now)")
    screen.type("\x03")
    assert screen.end() == 130
    assert f"{work.name} continues; to follow it" in screen.plain
    assert f"^C{work.name}" not in screen.plain


async def test_changes_are_requested_where_a_job_is_followed(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime, as_: As
) -> None:
    work = await make.reviewed()
    screen = terminal("wait", work.name, "--config", as_("carol").config)
    prompt = f"Approve {work.name}/1? y, n, r: request changes, d: diff, enter: not now: "
    screen.expect(prompt)
    screen.type("r\n")
    screen.expect("What should change? (enter: not now) ")
    screen.type("add a test\n")
    screen.expect("changes requested")
    question = await rt.questions.get(work.number, 1)
    assert (question.resolution or {})["reason"] == "add a test"
    screen.type("\x03")
    assert screen.end() == 130


async def test_wait_asks_for_a_decision_and_the_reason_of_a_denial(
    make: Factory, terminal: Callable[..., Terminal], as_: As
) -> None:
    work = await make.asked(GATE)
    screen = terminal("wait", work.name, "--config", as_("carol").config)
    screen.expect(f"Approve {work.name}/1? y, n, enter: not now: ")
    screen.type("d\n")
    screen.expect("no changes")
    screen.type("perhaps\n")
    screen.expect("'perhaps': enter y to approve, n to deny")
    screen.type("n\n")
    screen.expect("Reason (optional): ")
    screen.type("not on a Friday\n")
    assert screen.end() == 1
    assert "denied by carol: not on a Friday" in screen.plain


async def test_a_wait_without_a_worker_is_explained_at_once(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal]
) -> None:
    await make.worker_row(queues=["q"])
    hint = "no live worker serves the queue 'other'; to start a worker: draftsman worker --queue o"
    queued = await make.queued(queue="other")
    assert (await cli("wait", queued, "--timeout", "0.1s")).err.startswith(f"D-{queued}: {hint}")
    submit = ("submit", "--type", "noop", "--queue", "other", "--unchecked")
    done = await cli(*submit, "--wait", "--timeout", "0.1s")
    assert hint in done.err.splitlines()[1]
    screen = terminal(*submit)
    screen.expect(hint)
    assert screen.end() == 0


async def test_wait_reports_the_status_at_the_timeout(cli: Cli, make: Factory) -> None:
    running = await make.running()
    asked = await make.asked()
    done = await cli("wait", running.name, "--timeout", "0.2s")
    done.refused(1, f"{running.name} is still running after 0.2 s; see: draftsman why")
    done = await cli("wait", asked.name, "--timeout", "0.2s")
    done.refused(
        5, f"{asked.name}/1 is still open after 0.2 s; run: draftsman answer {asked.name}/1"
    )


async def test_wait_reports_the_time_of_the_next_attempt(
    make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    number = await make.retrying(overrides={"base_delay": 900, "max_delay": 900})
    await make.set_due(number, 3600)
    submitted = terminal("submit", "--type", "noop", "--queue", "q", "--wait")
    submitted.expect("D-2 created")
    failure = Failure("busy\nand more", http_status=429, retry_after=7200)
    await rt.settlement.failure(await make.running(2), failure)
    waiting = terminal("wait", number)
    waiting.expect(f"D-{number}: run 1 failed: busy; next retry in 60 min")
    waiting.expect("(retry 1 of 3)")
    submitted.expect("D-2: run 1 failed: busy; next retry in 2 h")
    for job, expected in ((number, waiting), (2, submitted)):
        await make.due(job)
        await rt.settlement.outcome(await make.running(job), Done({}))
        assert expected.end() == 0


async def test_wait_continues_after_an_answer_in_another_channel(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    async with background(cli("wait", work.name, "--timeout", "20s")) as waiting:
        await make.answer(work.number, "red")
        await rt.settlement.outcome(await make.running(work.number), Done({}))
        assert (await asyncio.wait_for(waiting, 10)).code == 0
