"""Conversations of several turns, from the listeners to the outbox."""

from __future__ import annotations

import re

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman_testing.factories import GATE, QUESTION
from draftsman_testing.waits import until
from tests.bots.slack.listeners.conftest import ANNA, BEN, CAROL, DAVE, Seen, SlackBotHarness


async def test_a_reply_under_the_card_of_a_command_answers(
    bench: SlackBotHarness, seen: Seen
) -> None:
    await bench.slack.command(ANNA, bench.general, "fix it")
    card = await seen(bench.general, None, "D-1")
    work = await bench.make.running(1)
    await bench.rt.asking.ask(work.lease, QUESTION)
    question_message = await seen(bench.general, card["ts"], "Which one?")
    assert "draftsman_answer:2" in str(question_message)
    await bench.slack.say(BEN, bench.general, "2", card["ts"])
    question = await bench.rt.questions.get(1, 1)
    assert await bench.answer(question) == ("blue", ("ben",))

    async def look() -> bool:
        result = bench.slack.messages(bench.general, card["ts"])
        return not any("draftsman_answer:2" in str(item) for item in result)

    await until(look, "a question without buttons")


async def test_late_click_on_a_decided_question_is_refused(
    bench: SlackBotHarness, seen: Seen
) -> None:
    ack = await bench.slack.mention(ANNA, bench.general, "fix it")
    work = await bench.make.running(1)
    await bench.rt.asking.ask(work.lease, GATE)
    asked = await seen(bench.general, ack.ts, "Deploy?")
    pressed = await bench.slack.press(CAROL, bench.general, asked["ts"], "draftsman_approve")
    late = await bench.slack.interactive(pressed.sent | {"user": {"id": DAVE, "name": "dave"}})
    assert late.acked
    (text,) = await bench.ephemeral_texts(DAVE)
    refused = r"Your answer was not accepted: D-1/1 was already approved by carol, .+\. "
    step = "To see what the job does now: `?/draftsman show D-1`?"
    assert re.fullmatch(refused + step, text), text


async def test_reply_to_a_direct_copy_decides_only_its_question(
    bench: SlackBotHarness, seen: Seen
) -> None:
    room = bench.slack.channel("small", [ANNA, CAROL])
    ack = await bench.slack.mention(ANNA, room, "fix it", retries=3)
    [
        job
    ] = await bench.rt.read_model.jobs()  # of the two events of a mention, either takes a number
    work = await bench.make.running(job.number)
    await bench.rt.asking.ask(work.lease, GATE)
    direct = bench.slack.direct(DAVE)
    copy = await seen(direct, None, "Deploy?")
    await bench.slack.say(DAVE, direct, "deny too risky", copy["ts"])
    question = await bench.rt.questions.get(job.number, 1)
    assert await bench.answer(question) == ("denied", ("dave",))
    assert ack.acked


async def test_a_reply_to_the_copy_of_a_closed_question_answers_no_other(
    bench: SlackBotHarness, seen: Seen
) -> None:
    room = bench.slack.channel("small", [ANNA, CAROL])
    await bench.slack.mention(ANNA, room, "fix it", retries=3)
    [
        job
    ] = await bench.rt.read_model.jobs()  # of the two events of a mention, either takes a number
    work = await bench.make.running(job.number)
    again = GATE.model_copy(update={"key": "again", "text": "Really?"})
    await bench.rt.asking.ask(work.lease, GATE)
    direct = bench.slack.direct(DAVE)
    copy = await seen(direct, None, "Deploy?")
    await bench.make.decide(
        job.number, True, bench.rt.policy.resolve(Actor(Source.CLI, "carol", "Carol"))
    )
    await bench.rt.asking.ask((await bench.make.running(job.number)).lease, again)
    await bench.slack.say(DAVE, direct, "approve", copy["ts"])
    assert await bench.is_open(await bench.rt.questions.get(job.number, 2))
    await bench.ctx.background.idle()
    (message,) = bench.slack.messages(direct, copy["ts"])[-1:]
    refused = f"Your answer was not accepted: D-{job.number}/1 was already approved by carol, "
    assert message["text"].startswith(refused)
