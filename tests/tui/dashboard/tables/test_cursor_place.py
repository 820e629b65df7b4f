"""The place of the cursor when a command takes the row under it away."""

from __future__ import annotations

import pytest

from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

YES = QuestionSpec(key="yes", text="Go on?", choices=["no", "yes"])


def _line(seen: DashboardPilot) -> int:
    """Return the line of the screen with the cursor."""
    return next(nth for nth, line in enumerate(seen.lines) if line.startswith("▸"))


async def _applied(seen: DashboardPilot) -> None:
    """Wait for the end of the undo window."""
    await seen.until(lambda: not seen.app.session.undo.batches)


@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("view", ["inbox", "for-me", "jobs"])
async def test_an_answered_row_stays_until_the_answer_counts_and_the_next_follows_on_its_line(
    make: Factory, rt: Runtime, owner: Actor, view: str, start: int
) -> None:
    for _ in range(4):
        await make.asked(YES)
    await make.running()
    suffix = "" if view == "jobs" else "/1"
    keys = [f"D-{number}{suffix}" for number in (1, 2, 3, 4)]
    more = ["D-5"] if view == "jobs" else []
    async with open_dashboard(rt, owner, undo=1) as seen:
        await seen.command(view)
        await seen.rows(*keys, *more)
        await seen.press("j", "k", *"j" * start)
        line = _line(seen)
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.press("1")
        await seen.see("answered by root, counts in")
        assert (seen.keys, seen.cursor_key) == ([*keys, *more], keys[start])
        await _applied(seen)
        await seen.until(lambda: seen.cursor_key != keys[start])
        rest = [key for key in keys if key != keys[start]]
        below = [*keys[start + 1 :], *more, *reversed(keys[:start])]
        assert seen.cursor_key == below[0]
        assert seen.keys[: len(rest)] == rest
        if keys[start + 1 :]:
            assert _line(seen) == line


async def test_each_question_of_a_review_leaves_the_cursor_in_its_place(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(3):
        await make.asked(YES)
    await make.running()
    async with open_dashboard(rt, owner, undo=0) as seen:
        await seen.rows("D-1", "D-2", "D-3", "D-4")
        await seen.press("j", "k", "A")
        await seen.see("1 of 3 for you · D-1/1")
        await seen.press("1")
        await seen.see("2 of 3 for you · D-2/1")
        await seen.press("1")
        await seen.see("3 of 3 for you · D-3/1")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        await seen.until(lambda: seen.keys[0] == "D-3")
        assert seen.cursor_key == "D-3"


@pytest.mark.parametrize(
    ("status", "command"),
    [
        (Status.WAITING_FOR_INPUT, "cancel no"),
        (Status.FAILED, "dismiss fixed"),
        (Status.FAILED, "retry"),
        (Status.SCHEDULED, "cancel D-2 no"),
    ],
)
async def test_each_command_that_takes_a_row_away_leaves_the_cursor_in_its_place(
    make: Factory, rt: Runtime, owner: Actor, status: Status, command: str
) -> None:
    for _ in range(3):
        await make.job_in(status)
    await make.completed()
    async with open_dashboard(rt, owner) as seen:
        await seen.until(lambda: len(seen.keys) == 4)
        shown = seen.keys
        assert shown[1] == "D-2"
        await seen.press("j")
        await seen.command(command)
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.until(lambda: seen.cursor_key != "D-2")
        assert seen.cursor_key == shown[2]
        assert "D-2" in seen.keys


async def test_the_cursor_stays_in_its_place_when_a_question_is_delegated(
    make: Factory, rt: Runtime, people: People
) -> None:
    carol = people.on(Source.TUI, "carol")
    for _ in range(3):
        await make.asked(GATE)
    async with open_dashboard(rt, carol, view="inbox") as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("j")
        await seen.command("delegate dave")
        await seen.rows("D-1/1", "D-3/1", "D-2/1")
        assert seen.cursor_key == "D-3/1"
        await seen.press("j")
        assert seen.cursor_key == "D-2/1"


async def test_the_next_row_follows_a_row_that_is_gone_also_where_rows_were_added_above(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(3):
        await make.asked(YES)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        await seen.press("j")
        seen.app.session.refresher.show(None)
        urgent = await make.asked(YES.model_copy(update={"expires_in": 600}))
        await make.answer(2, "yes")
        seen.app.main.load()
        await seen.rows(f"{urgent.name}/1", "D-1/1", "D-3/1")
        assert seen.cursor_key == "D-3/1"
