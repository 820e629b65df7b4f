"""`show`: everything about one job, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable

from draftsman.domain.answer import Response
from draftsman.domain.outcome import Done
from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.support.people import People
from tests.tui.cli.running import Cli, Terminal


async def test_a_job_with_a_history_is_shown_whole(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(title="Pay", text="Tidy up\n  the tests", tags=("x",), payload={"n": 1})
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
