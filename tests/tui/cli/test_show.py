"""`show`: everything about one job, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from draftsman.domain.answer import Response
from draftsman.domain.outcome import Done
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.support.people import People
from tests.tui.cli.running import Cli, Terminal


async def test_a_job_with_a_history_is_shown_whole(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    words: dict[str, Any] = {"title": "Pay", "text": "Tidy up\n  the tests", "tags": ("x",)}
    work = await make.asked(**words, skills=("sql", "python"), payload={"n": 1})
    await rt.questions.answer(
        work.number, 1, Response(source_event_id="early", text="red"), people.carol
    )  # refused: an approver is no responder
    await make.answer(work.number, "red", people.ben)
    work = await make.running(work.number)
    await rt.checkpoints.artifact(work.lease, "report.json", "report", b"{}")
    await rt.settle.outcome(work, Done({"summary": "all well"}))
    done = await cli("show", work.name)
    assert done.code == 0
    for text in (
        f"{work.name}  Pay  completed",
        "noop · mode fix",
        "Root (cli)",
        "tags      x\n",
        "skills    sql, python\n",
        "  the tests",
        '"n": 1',
        f"{work.name}/1 answered  Which one?",
        "→ red, by ben",
        "refused from carol: Carol may not answer",
        "report.json  report  2 B  run .2",
        '"summary": "all well"',
    ):
        assert text in done.out, text
    found = (await cli("show", work.name, "--json")).json
    assert (found["number"], found["status"]) == (work.number, "completed")
    assert [run["status"] for run in found["runs"]] == ["paused", "completed"]
    assert found["questions"][0]["resolution"]["value"] == "red"
    assert [one["accepted"] for one in found["answers"]] == [False, True]
    assert [one["name"] for one in found["artifacts"]] == ["report.json"]


async def test_failure_and_cancel_say_why(cli: Cli, make: Factory, rt: Runtime) -> None:
    failed, running = await make.failed(), await make.running()
    await rt.operate.cancel(running.number, make.owner, "not needed")
    assert "no such thing (PERMANENT)" in (await cli("show", failed)).out
    assert "by cli:root: not needed" in (await cli("show", running.name)).out


async def test_a_chain_is_shown_from_each_of_its_jobs(cli: Cli, make: Factory, rt: Runtime) -> None:
    first = await make.failed()
    second = (await rt.operate.retry(first, make.owner)).number
    work = await make.running(second)
    await rt.settle.failure(work, Failure("no", declared="PERMANENT"))
    third = (await rt.operate.retry(second, make.owner)).number
    alone = await make.queued()
    says = {
        first: f"D-{first} · then D-{second} failed, D-{third} queued",
        second: f"D-{second} <- D-{first} · then D-{third} queued",
        third: f"D-{third} <- D-{second} <- D-{first}\n",
    }
    for number, text in says.items():
        assert f"chain     {text}" in (await cli("show", number)).out
    assert "chain" not in (await cli("show", alone)).out
    chain = (await cli("show", second, "--json")).json["chain"]
    assert [(one["number"], one["retry_of"], one["chain_length"]) for one in chain] == [
        (first, None, 0),
        (second, first, 1),
        (third, second, 2),
    ]


async def test_of_a_long_chain_the_ends_are_shown(cli: Cli, make: Factory, rt: Runtime) -> None:
    numbers = [await make.canceled()]
    for _ in range(9):
        made = (await rt.operate.retry(numbers[-1], make.owner)).number
        await rt.operate.cancel(made, make.owner)
        numbers.append(made)
    text = f"D-{numbers[9]} <- D-{numbers[8]} <- D-{numbers[7]} <- D-{numbers[6]}"
    assert f"{text} <- … 5 more … <- D-{numbers[0]}" in (await cli("show", numbers[9])).out
    assert "then D-2 canceled, D-3 canceled" in (await cli("show", numbers[0])).out


async def test_text_from_outside_cannot_drive_the_terminal(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"
    number = await make.queued(title=hostile, text=hostile)
    shown = terminal("show", number)
    assert shown.end() == 0
    for one in ("\x1b]0", "\x1b[2J", "\x07", "\u202e", "\x9b"):
        assert one not in shown.screen
    assert "\\x1b]0;owned\\x07" in shown.plain


async def test_long_lines_are_wrapped_under_themselves(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    number = await make.queued(text="  " + "word " * 60)
    shown = terminal("show", number)
    assert shown.end() == 0
    request = shown.plain.split("Request\n")[1].splitlines()
    assert len([one for one in request if one.startswith("    word")]) >= 3
    assert max(map(len, shown.plain.splitlines())) <= 80
