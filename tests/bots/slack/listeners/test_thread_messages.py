"""Replies that answer no question, as messages to the agent of the thread's job."""

from __future__ import annotations

from typing import Any, Final

from draftsman_testing.factories import GATE, QUESTION
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, MALLORY, SlackBotHarness

AGENT: Final[dict[str, Any]] = {"type": "run_agent", "title": "Do it"}
SENT: Final = "Message {} sent to D-1: the agent gets it between two turns, or with its next run."


async def running(bench: SlackBotHarness, **fields: Any) -> tuple[int, str]:
    """Start an agent's job with a thread; return its number, and the ts of the thread."""
    root = (await bench.post("a request"))["ts"]
    target = f"slack:{bench.general}/{root}"
    work = await bench.make.running(**AGENT, notify=(target,), **fields)
    return work.number, root


async def texts(bench: SlackBotHarness, number: int) -> list[tuple[str, str]]:
    messages = await bench.rt.messages.of_job(number)
    assert {item.source for item in messages} <= {"slack"}
    return [(item.sender, item.text) for item in messages]


async def test_a_reply_without_a_question_is_a_single_message(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    await bench.slack.say(BEN, bench.general, "use the v2 API", root, copies=3)
    await bench.slack.mention(BEN, bench.general, "and test it", root, copies=2)
    assert await texts(bench, number) == [("ben", "use the v2 API"), ("ben", "and test it")]
    assert await bench.ephemeral_texts(BEN) == [SENT.format(1), SENT.format(2)]


async def test_a_reply_that_answers_a_question_is_no_message(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(QUESTION, **AGENT)
    await bench.slack.say(BEN, bench.general, "red", root, copies=2)
    assert await bench.answer(question) == ("red", ("ben",))
    gate, gate_root = await bench.asked(GATE, **AGENT)
    await bench.slack.say(CAROL, bench.general, "looks good", gate_root)
    assert await texts(bench, question.job) == await texts(bench, gate.job) == []
    await bench.slack.say(BEN, bench.general, "use the v2 API", root)
    assert await texts(bench, question.job) == [("ben", "use the v2 API")]


async def test_a_job_that_takes_no_messages_gets_none(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    await bench.rt.job_control.cancel(number, bench.make.owner, force=True)
    await bench.slack.say(BEN, bench.general, "thanks", root)
    other, other_root = await bench.asked()
    await bench.slack.say(BEN, bench.general, "red", other_root)
    await bench.slack.say(BEN, bench.general, "thanks", other_root)
    assert await texts(bench, number) == await texts(bench, other.job) == []
    assert await bench.ephemeral_texts(ANNA) == []


async def test_a_refused_message_is_answered_once(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    for user in (CAROL, MALLORY):
        await bench.slack.say(user, bench.general, "hello", root)
        await bench.slack.say(user, bench.general, "hello again", root)
    assert await texts(bench, number) == []
    (refused,) = await bench.ephemeral_texts(CAROL)
    assert "may not send messages to jobs" in refused
    (unknown,) = await bench.ephemeral_texts(MALLORY)
    assert "is not linked to a person" in unknown


async def test_an_edit_is_not_sent_and_its_author_is_notified(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    sent = await bench.slack.say(BEN, bench.general, "use the v2 API", root)
    await bench.slack.edit(bench.general, sent.ts, "use the v3 API")
    assert await texts(bench, number) == [("ben", "use the v2 API")]
    _, notice = await bench.ephemeral_texts(BEN)
    assert notice == "An edit is not sent to the agent of D-1. Write another message."


async def test_a_command_sends_a_message(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    ack = await bench.slack.command(BEN, bench.general, f"tell D-{number} use the v2 API")
    assert ack.body["text"] == SENT.format(1)
    other = await bench.make.running(**AGENT, notify=(f"slack:{bench.general}/{root}",))
    await bench.slack.say(BEN, bench.general, "which one?", root)
    asked = (await bench.ephemeral_texts(BEN))[-1]
    newest = f"D-{other.number}"
    assert f"{newest} or D-{number}? Send it with `/draftsman tell {newest} TEXT`" in asked
    assert await texts(bench, number) == [("ben", "use the v2 API")]


async def test_a_command_pauses_and_resumes_a_job(bench: SlackBotHarness) -> None:
    number, _ = await running(bench, actor=bench.make.owner)
    ack = await bench.slack.command(BEN, bench.general, f"pause D-{number} the API is down")
    assert "may not pause or resume jobs" in ack.body["text"]
    olga = await bench.linked("olga")
    ack = await bench.slack.command(olga, bench.general, f"pause D-{number} the API is down")
    assert ack.body["text"] == (
        f"D-{number} paused; its worker parks it. To resume it: `/draftsman resume D-{number}`"
    )
    ack = await bench.slack.command(olga, bench.general, f"status D-{number}")
    assert "the API is down" in ack.body["text"]
    ack = await bench.slack.command(olga, bench.general, f"resume D-{number}")
    assert ack.body["text"] == f"D-{number} resumed."
