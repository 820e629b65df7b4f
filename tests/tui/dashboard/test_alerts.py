"""Alerts of the terminal about questions that wait for the user."""

from __future__ import annotations

import pytest

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.attention import attention
from draftsman_tui.dashboard.attention.alerts import TerminalAlerts, notification_text
from draftsman_tui.dashboard.attention.attention import AttentionCount, AttentionPoller
from tests.support.clock import Clock
from tests.support.event_history import wait_for_feed
from tests.tui.dashboard.pilot import connected, open_dashboard

HOSTILE = QuestionSpec(key="h", text="Deploy; now?\x1b]2;owned\a\nreally", freeform=True)


async def test_a_new_question_rings_notifies_and_is_counted_in_the_title(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM_PROGRAM", raising=False)
    monkeypatch.delenv("TMUX", raising=False)
    written: list[str] = []
    await make.asked()
    async with open_dashboard(rt, owner) as seen:
        assert seen.app._driver is not None
        monkeypatch.setattr(seen.app._driver, "write", written.append)
        seen.app._alerts._title = None
        await seen.rows("D-1")
        work = await make.asked(HOSTILE, title="Shop")
        await seen.until(lambda: "\a" in written)
        await seen.until(lambda: "\x1b]2;(2) draftsman\a" in written)
        notes = [text for text in written if text.startswith("\x1b]777;notify;draftsman;")]
        text = f"{work.name}/1 Shop: Deploy, now?" + r"\u{1b}]2,owned\u{7}"
        assert notes == [f"\x1b]777;notify;draftsman;{text}\a"]
        await make.answer(1, "red")
        await seen.until(lambda: written[-1] == "\x1b]2;(1) draftsman\a")
        assert written.count("\a") == 1
    assert written[-1] == "\x1b[23;2t"


async def test_only_questions_that_the_user_may_answer_count(
    make: Factory, rt: Runtime, people: People
) -> None:
    carol, erin = (people.on(Source.TUI, name) for name in ("carol", "erin"))
    pollers = [AttentionPoller(connected(rt, user)) for user in (carol, erin)]
    assert [await poller.poll([]) for poller in pollers] == [
        AttentionCount(0, 0),
        AttentionCount(0, 0),
    ]
    work = await make.asked(GATE)
    await wait_for_feed(rt)
    events = await rt.read_model.job_events(work.number)
    for poller in pollers:
        poller._read_at = 0
    gate, none = [await poller.poll(events) for poller in pollers]
    assert gate is not None
    assert ([question.name for question in gate.new], gate.mine) == ([f"{work.name}/1"], 1)
    assert none == AttentionCount(1, 0)
    assert await pollers[0].poll([]) is None


async def test_a_question_that_another_person_holds_waits_for_that_person(
    make: Factory,
    rt: Runtime,
    people: People,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "HELD_INTERVAL", 0.0)
    carol, dave = (people.on(Source.TUI, name) for name in ("carol", "dave"))
    pollers = [AttentionPoller(connected(rt, user)) for user in (carol, dave)]
    work = await make.asked(GATE)

    async def counts() -> list[int]:
        for poller in pollers:
            poller._read_at = 0
        return [count.mine for poller in pollers if (count := await poller.poll([])) is not None]

    assert await counts() == [1, 1]
    await rt.acknowledgments.delegate(work.number, 1, carol, "dave", 60)
    await wait_for_feed(rt)
    for poller in pollers:
        poller._read_at = 0
    events = await rt.read_model.job_events(work.number)
    held = [await poller.poll(events) for poller in pollers]
    assert [count and count.mine for count in held] == [0, 1]
    await clock.forward(61)
    assert await counts() == [1, 1]


async def test_kinds_of_alerts_are_chosen(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make.asked()
    await make.asked()
    new = await rt.questions.open()
    assert notification_text(new) == "2 questions for you: D-1/1, D-2/1"
    monkeypatch.setenv("TERM_PROGRAM", "iTerm.app")
    monkeypatch.delenv("TMUX", raising=False)
    for kinds, expected in (
        ([], []),
        (["bell"], ["\a"]),
        (["notification"], ["\x1b]9;2 questions for you: D-1/1, D-2/1\a"]),
        (["title"], ["\x1b[22;2t", "\x1b]2;(10,000+) draftsman\a", "\x1b[23;2t"]),
    ):
        written: list[str] = []
        alerts = TerminalAlerts(written.append, kinds)
        alerts.show(AttentionCount(10_000, 10_000, new))
        alerts.close()
        assert written == expected, kinds


async def test_a_notification_passes_through_tmux(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make.asked(title="Shop")
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.delenv("TERM_PROGRAM", raising=False)
    written: list[str] = []
    TerminalAlerts(written.append, ["notification"]).show(
        AttentionCount(1, 1, await rt.questions.open())
    )
    text = "\x1b\x1b]777;notify;draftsman;D-1/1 Shop: Which one?\a"
    assert written == [f"\x1bPtmux;{text}\x1b\\"]
