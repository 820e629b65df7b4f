"""The undo window of answers, denials and cancels, and keys that are held."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.job import Source, Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.frame.connection import DatabaseClock
from draftsman_tui.dashboard.questions.key_guard import KeyGuard
from draftsman_tui.dashboard.questions.undo_window import HeldBatch, UndoWindow, undo_text
from tests.support.clock import Clock
from tests.tui.dashboard.fixtures_data import NOW
from tests.tui.dashboard.pilot import PatientGuard, connected, open_dashboard

YES = QuestionSpec(key="yes", text="Go on?", choices=["no", "yes"])
WORDS = QuestionSpec(key="words", text="What is it called?", freeform=True)


def _decision(seconds: float) -> PendingDecision:
    at = NOW + timedelta(seconds=seconds)
    return PendingDecision(1, 2, 1, Source.TUI, "e", "anna", "Anna", "anna", False, {}, at)


def test_the_undo_line_counts_down_for_the_newest_batch() -> None:
    first = HeldBatch("D-1/1 approved", (_decision(0.4),))
    batch = HeldBatch("D-2, D-3\nanswered", (_decision(3.2), _decision(4.2)))
    assert undo_text([], NOW) == ""
    assert undo_text([first], NOW) == "D-1/1 approved · takes effect in 1 s · u: undo"
    text = "D-2, D-3 answered · takes effect in 5 s · ctrl+x: undo · 1 more pending"
    assert undo_text([first, batch], NOW, "ctrl+x") == text
    long = HeldBatch("D-154/1 answered: allow for this job", (_decision(4.2),))
    narrow = undo_text([first, long], NOW, width=66)
    visible = narrow.removesuffix(" · 1 more pending")
    assert visible == "D-154/1 answered: allow for this… · takes effect in 5 s · u: undo"
    assert len(visible) <= 66
    assert undo_text([long], NOW, width=80).startswith(long.text)
    assert "in 0 s" in undo_text([first], NOW + timedelta(seconds=9))


async def test_an_undo_that_did_not_reach_the_database_can_be_repeated(owner: Actor) -> None:
    async def unreachable(decision: PendingDecision, *, early: bool = False) -> bool:
        raise DatabaseUnreachable("the database cannot be reached")

    service = SimpleNamespace(undo=unreachable, apply=unreachable)
    runtime: Any = SimpleNamespace(pending_decisions=service, seen_by=lambda viewer: runtime)
    changes: list[int] = []
    clock = cast(DatabaseClock, SimpleNamespace(now=NOW))
    window = UndoWindow(
        5,
        connected(runtime, owner),
        clock,
        report=lambda _text, _failed: None,
        changed=lambda: changes.append(1),
    )
    window.hold("D-1/1 approved", [_decision(5)])
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable):
            await window.undo()
        assert window.text() == "D-1/1 approved · takes effect in 5 s · u: undo"
    await window.finish()
    assert len(changes) == 5


def test_the_repetitions_of_a_held_key_are_no_press() -> None:
    time = [0.0]
    guard = KeyGuard(lambda: time[0])

    def is_press(at: float, key: str) -> bool:
        time[0] = at
        guard.press(key)
        return guard.is_pressed_since(at)

    assert is_press(1.0, "y")
    assert not is_press(1.66, "y")  # the delay of a terminal before the first repetition
    assert not any(is_press(1.66 + nth * 0.03, "y") for nth in range(1, 40))
    assert is_press(2.86, "n")  # another key is a press, even while the first is held
    assert is_press(2.9, "y")
    assert is_press(3.7, "y")  # after more than the delay of any terminal
    assert not is_press(4.3, "y")
    assert is_press(4.7, "y")  # released: a held key repeats faster than this


async def test_a_held_key_decides_one_question_and_u_takes_it_back(
    make: Factory, rt: Runtime, people: People, clock: Clock
) -> None:
    gates = [(await make.asked(GATE)).number for _ in range(2)]
    words = (await make.asked(WORDS)).number
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, view="inbox", undo=60) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1")
        guard = seen.app.session.key_guard
        assert isinstance(guard, PatientGuard)
        await seen.press("space", "space", "A")
        await seen.see("1 of 2 selected · D-1/1")
        await seen.press("y")
        await seen.see("2 of 2 selected · D-2/1", "D-1/1 approved · takes effect in", "u: undo")
        guard.pause = 0.03
        await seen.press(*"yyyyyyyyyy")
        await seen.see("D-2/1 has just opened; press the key again")
        statuses = [(await rt.questions.get(number, 1)).status for number in gates]
        assert statuses == [QuestionStatus.OPEN] * 2
        guard.pause = 1.0
        await seen.press("u")
        await seen.see("1 of 2 selected · D-1/1")
        await seen.press("n")
        await seen.see("2 of 2 selected · D-2/1", "D-1/1 denied · takes effect in")
        await seen.press("y")
        await seen.wait_for_toast("No more questions: 2 answered")
        await seen.see("D-2/1 approved · takes effect in", "1 more pending", "by carol")
        await seen.press("u")
        await seen.wait_for_toast("Undone: D-2/1 approved")
        await seen.press("u", "u")
        await seen.wait_for_toast("nothing to undo")
        assert (await rt.questions.get(1, 1)).status is QuestionStatus.OPEN
        await seen.press("y")
        await seen.see("Approve 2 requests?")
        await seen.press("y")
        await seen.see("D-1/1, D-2/1 approved · takes effect in")
    # the dashboard has quit: what was pending counts
    jobs = [await rt.read_model.job(number) for number in (*gates, words)]
    assert [job.status for job in jobs] == [
        *(Status.RESUMED, Status.RESUMED, Status.WAITING_FOR_INPUT)
    ]


async def test_the_effect_of_an_answer_is_not_shown_over_the_next_question_of_a_review(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for spec in (YES, WORDS):
        await make.asked(spec)
    async with open_dashboard(rt, owner, view="inbox", undo=1) as seen:
        await seen.rows("D-1/1", "D-2/1")
        await seen.press("A")
        await seen.see("1 of 2 for you · D-1/1")
        await seen.press("y")
        await seen.see("2 of 2 for you · D-2/1", "takes effect in")
        await seen.until(lambda: not seen.app.session.undo.batches)
        assert (await rt.read_model.job(1)).status is Status.RESUMED
        assert not seen.toasts
        await seen.press("escape")


async def test_decisions_of_a_killed_dashboard_take_effect_and_others_see_them(
    make: Factory, rt: Runtime, owner: Actor, people: People, clock: Clock
) -> None:
    job = (await make.asked(YES)).number
    running = (await make.running()).number
    async with open_dashboard(rt, owner, view="inbox", undo=60) as seen:
        await seen.rows("D-1/1")
        await seen.press("a")
        await seen.see("2  yes")
        await seen.press("2")
        await seen.see("D-1/1 answered: yes · takes effect in")
        await seen.command("jobs")
        await seen.newest_first()
        await seen.rows("D-2", "D-1")
        await seen.press("home", "c")
        await seen.see("Cancel D-2?")
        await seen.press("y")
        await seen.see("D-2 canceled · takes effect in", "1 more pending")
        for task in seen.app.session.undo._tasks.values():  # as kill -9 ends them
            task.cancel()
        seen.app.session.undo.batches.clear()
    async with open_dashboard(rt, people.on(Source.TUI, "ben"), view="inbox") as other:
        await other.see("answered by root, counts in")
    await clock.forward(61)
    assert await rt.pending_decisions.apply_due(LeaderTerm()) == 2
    assert (await rt.read_model.job(job)).status is Status.RESUMED
    assert (await rt.read_model.job(running)).cancel_requested_at is not None
