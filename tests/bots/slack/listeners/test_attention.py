"""Buttons and commands that acknowledge, snooze and delegate a question."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from draftsman.people.hours import QuietHours
from draftsman_bots.slack import ids
from draftsman_testing.factories import GATE, QUESTION
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, MALLORY, SlackBotHarness

DAY = QUESTION.model_copy(update={"expires_in": 86_400.0})


async def test_buttons_acknowledge_and_snooze_a_question(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(DAY)
    await bench.slack.press(BEN, bench.general, ts, ids.ACKNOWLEDGE)
    await bench.slack.press(BEN, bench.general, ts, ids.SNOOZE)
    acknowledged, snoozed = await bench.ephemeral_texts(BEN)
    assert acknowledged.startswith(f"{question.name} acknowledged until ")
    assert snoozed.startswith(f"{question.name} snoozed until ")
    delays = await bench.rt.acknowledgments.delays(question.job, 1)
    assert [(delay.person, delay.acknowledged) for delay in delays] == [
        ("ben", True),
        ("ben", False),
    ]
    for user, reason in ((ANNA, "may not answer"), (MALLORY, "not linked to a person")):
        await bench.slack.press(user, bench.general, ts, ids.ACKNOWLEDGE)
        assert reason in (await bench.ephemeral_texts(user))[-1]
    assert await bench.is_open(question)


async def test_a_user_is_chosen_to_answer(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    await bench.slack.choose(CAROL, bench.general, ts, ids.DELEGATE, "UDAVE")
    (reply,) = await bench.ephemeral_texts(CAROL)
    assert reply.startswith(f"{question.name} delegated to dave; others wait until ")
    await bench.slack.choose(CAROL, bench.general, ts, ids.DELEGATE, BEN)
    assert "ben may not" in (await bench.ephemeral_texts(CAROL))[-1]
    await bench.slack.choose(CAROL, bench.general, ts, ids.DELEGATE, MALLORY)
    assert "unknown person" in (await bench.ephemeral_texts(CAROL))[-1]
    attention = (await bench.rt.acknowledgments.attention([question.job]))[question.job, 1]
    assert (attention.delegated_to, attention.delegated_by) == ("dave", "carol")


async def test_commands_acknowledge_snooze_and_delegate(bench: SlackBotHarness) -> None:
    gate, _, _ = await bench.shown(GATE)
    for text, reply in (
        (f"ack {gate.name} 2h", "acknowledged until"),
        (f"snooze {gate.name} 3h", ": no reminders for you."),
        (f"delegate {gate.name} to <@UDAVE|dave> 30m", "delegated to dave"),
        (f"delegate {gate.name} @dave", "delegated to dave"),
        (f"ack {gate.name} soon", "invalid duration 'soon'"),
        (f"delegate {gate.name}", "a person is required"),
        ("ack", "a question is required"),
    ):
        ack = await bench.slack.command(CAROL, bench.general, text)
        assert reply in ack.body["text"], ack.body["text"]


async def test_a_delegate_outside_of_their_hours_is_named(bench: SlackBotHarness) -> None:
    question, _, ts = await bench.shown(GATE)
    policy = bench.rt.policy
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    quiet = QuietHours((now - hour).time(), (now + hour).time(), ZoneInfo("UTC"))
    policy.people = {**policy.people, "dave": replace(policy.people["dave"], quiet=quiet)}
    await bench.slack.choose(CAROL, bench.general, ts, ids.DELEGATE, "UDAVE")
    (reply,) = await bench.ephemeral_texts(CAROL)
    assert reply.startswith(f"{question.name} delegated to dave; others wait until <!date^")
    assert " UTC>; dave is outside of their hours, and is notified at <!date^" in reply
