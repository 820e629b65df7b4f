"""Messages, mentions and replies: requests, answers, or neither."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.jobs.job import Status
from draftsman.questions.question_spec import QuestionSpec
from draftsman_testing.factories import GATE, QUESTION
from tests.bots.slack.listeners.conftest import (
    ANNA,
    BEN,
    CAROL,
    DAVE,
    MALLORY,
    MENTIONS,
    SlackBotHarness,
)
from tests.support.clock import Clock

OWN_WORDS = QuestionSpec(key="why", text="Why?", freeform=True)
BOT = {"bot_id": "B0OTHER"}
"""An app that posts in a user's name."""


def _named(bench: SlackBotHarness, text: str) -> str:
    return f"<@{bench.slack.bot_user}> {text}"


async def test_mention_delivered_six_times_creates_one_job_in_its_thread(
    bench: SlackBotHarness,
) -> None:
    ack = await bench.slack.mention(
        ANNA, bench.general, "fix it", copies=3, new_event_id=True, reordered=True
    )
    assert len(ack.copies) == 6
    assert await bench.jobs() == ["it"]
    (created,) = await bench.rt.read_model.jobs()
    (target,) = await bench.rt.outbox.targets(created.number)
    assert (target.target, target.thread) == (bench.general, ack.ts)
    key = f"slack:msg:{bench.slack.team}:{bench.general}:{ack.ts}"
    assert (await bench.rt.read_model.job(created.number)).idempotency_key == key
    assert await bench.ephemeral_texts(ANNA) == []


async def test_mention_is_handled_before_the_bot_identity_is_known(
    bench: SlackBotHarness,
) -> None:
    bench.ctx.identity.bot_user = bench.ctx.identity.bot_id = None
    question, root = await bench.asked(OWN_WORDS)
    await bench.slack.mention(ANNA, bench.general, "fix it")
    await bench.slack.mention(BEN, bench.general, "because", root)
    assert (await bench.jobs())[1:] == ["it"]
    assert await bench.answer(question) == ("because", ("ben",))


async def test_refusal_of_both_copies_is_sent_once(bench: SlackBotHarness) -> None:
    await bench.slack.mention(MALLORY, bench.general, "fix it", copies=2)
    (text,) = await bench.ephemeral_texts(MALLORY)
    assert "is not linked to a person" in text
    assert await bench.jobs() == []


async def test_unknown_command_is_explained(bench: SlackBotHarness) -> None:
    await bench.slack.mention(ANNA, bench.general, "it is <b>broken</b>")
    (text,) = await bench.ephemeral_texts(ANNA)
    assert text.startswith(
        "Unknown command: it. A request begins with `fix` or `investigate`:"
        " `/draftsman fix it is &lt;b&gt;broken&lt;/b&gt;`\nCommands: fix, "
    )
    assert await bench.jobs() == []


async def test_a_mistyped_command_is_named_with_the_line_that_is_right(
    bench: SlackBotHarness,
) -> None:
    for typed, near, line in (
        ("fxi --repo=inventory Tidy up", "fix", "fix --repo=inventory Tidy up"),
        ("stauts D-1", "status", "status D-1"),
    ):
        await bench.slack.mention(ANNA, bench.general, typed)
        text = (await bench.ephemeral_texts(ANNA))[-1]
        first = typed.split()[0]
        said = f"Unknown command: {first}. Did you mean `{near}`? `/draftsman {line}`\n"
        assert text.startswith(said)
    assert await bench.jobs() == []


async def test_direct_message_is_a_request_with_updates_in_its_thread(
    bench: SlackBotHarness,
) -> None:
    direct = bench.slack.direct(ANNA)
    ack = await bench.slack.say(ANNA, direct, "fix it")
    assert await bench.jobs() == ["it"]
    (target,) = await bench.rt.outbox.targets(1)
    assert (target.target, target.thread) == (direct, ack.ts)


async def test_mention_edited_into_a_request_creates_a_job(bench: SlackBotHarness) -> None:
    ack = await bench.slack.mention(ANNA, bench.general, "fxi it")
    text = f"<@{bench.slack.bot_user}> fix it"
    await bench.slack.edit(bench.general, ack.ts, text)
    assert await bench.jobs() == ["it"]
    assert await bench.jobs() == ["it"]
    assert len(await bench.ephemeral_texts(ANNA)) == 1, "of what was no request"


@pytest.mark.parametrize("events", [MENTIONS, MENTIONS | {"message.channels"}])
async def test_edited_request_is_answered_that_it_has_no_effect(
    bench: SlackBotHarness, events: set[str]
) -> None:
    bench.slack.subscribed = events
    ack = await bench.slack.mention(ANNA, bench.general, "fix it --ref=main")
    await bench.slack.edit(bench.general, ack.ts, _named(bench, "fix it  --ref=main"))
    assert await bench.ephemeral_texts(ANNA) == [], "it asks for the same"
    for text in ("fix it and more", "fix it --ref=next", "oh, never mind"):
        await bench.slack.edit(bench.general, ack.ts, _named(bench, text), copies=2)
    assert await bench.jobs() == ["it"]
    message = await bench.ephemeral_texts(ANNA)
    [job] = await bench.rt.read_model.jobs()
    nothing = f"D-{job.number} was created from the original message; the edit has no effect."
    assert [item.startswith(nothing) for item in message] == [True] * 3
    assert f"`/draftsman cancel D-{job.number}`" in message[0]
    await bench.slack.command(ANNA, bench.general, f"cancel D-{job.number}")
    await bench.slack.edit(bench.general, ack.ts, _named(bench, "fix that"))
    assert (await bench.ephemeral_texts(ANNA))[-1].endswith("write a new message.")
    assert await bench.jobs() == ["it"]


async def test_invalid_choice_is_answered_with_the_choices(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    await bench.slack.say(BEN, bench.general, "green", root)
    (text,) = await bench.ephemeral_texts(BEN)
    assert "'green' is not a choice; choose: 1 red, 2 blue" in text
    assert await bench.is_open(question)


async def test_reply_without_permission_is_refused_with_an_ephemeral_message(
    bench: SlackBotHarness,
) -> None:
    question, root = await bench.asked()
    await bench.slack.say(MALLORY, bench.general, "blue", root)
    (text,) = await bench.ephemeral_texts(MALLORY)
    assert text.startswith(f"Your answer was not accepted: <@{MALLORY}> may not answer"), (
        "no bare id"
    )
    assert "allowed: ben" in text
    assert await bench.is_open(question)


async def test_mention_in_the_thread_is_an_answer(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    await bench.slack.mention(BEN, bench.general, "blue", root)
    assert await bench.answer(question) == ("blue", ("ben",))


async def test_answer_is_unescaped_once(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(OWN_WORDS)
    await bench.slack.say(BEN, bench.general, "&lt;b&gt; &amp; &amp;lt;", root)
    assert await bench.answer(question) == ("<b> & &lt;", ("ben",))


async def test_own_messages_are_not_answers(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(OWN_WORDS)
    bot_fields = {"bot_id": bench.slack.world.bot, "user": bench.slack.bot_user}
    await bench.slack.say(BEN, bench.general, "because", root, more=bot_fields)
    await bench.slack.say(ANNA, bench.general, _named(bench, "fix it"), more=bot_fields)
    assert await bench.is_open(question)
    assert len(await bench.jobs()) == 1


async def test_update_of_an_own_message_is_ignored(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(OWN_WORDS)
    own = {"bot_id": bench.slack.world.bot, "ts": "1.1", "thread_ts": root, "text": "new"}
    change: dict[str, Any] = {
        "type": "message",
        "subtype": "message_changed",
        "channel": bench.general,
    }
    change |= {"message": own | {"edited": {"ts": "2.1"}}, "previous_message": own | {"text": "x"}}
    assert (await bench.slack.event(change)).acked
    assert await bench.is_open(question)


@pytest.mark.parametrize("more", [BOT, BOT | {"subtype": "bot_message", "user": None}])
async def test_messages_of_other_bots_are_ignored(
    bench: SlackBotHarness, more: dict[str, str]
) -> None:
    question, root = await bench.asked(OWN_WORDS)
    await bench.slack.say(BEN, bench.general, "because", root, more=more)
    await bench.slack.say(ANNA, bench.general, _named(bench, "fix it"), more=more)
    assert await bench.is_open(question)
    assert len(await bench.jobs()) == 1


async def test_edit_of_a_rejected_reply_can_answer(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    ack = await bench.slack.say(BEN, bench.general, "bleu", root)
    assert await bench.is_open(question)
    await bench.slack.edit(bench.general, ack.ts, "blue")
    assert await bench.answer(question) == ("blue", ("ben",))


async def test_edit_after_acceptance_is_recorded_once(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    ack = await bench.slack.say(BEN, bench.general, "blue", root)
    await bench.slack.edit(bench.general, ack.ts, "red", copies=2, new_event_id=True)
    assert await bench.answer(question) == ("blue", ("ben",))
    (note,) = await bench.job_events(question, "answer_edited")
    assert (note["question"], note["text"]) == (1, "red")


async def test_link_unfurl_is_not_an_edit(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    ack = await bench.slack.say(BEN, bench.general, "blue", root)
    await bench.slack.unfurl(bench.general, ack.ts)
    assert await bench.job_events(question, "answer_edited") == []
    mentioned = await bench.slack.mention(ANNA, bench.general, "nonsense")
    await bench.slack.unfurl(bench.general, mentioned.ts)
    assert len(await bench.ephemeral_texts(ANNA)) == 1


async def test_reply_broadcast_to_the_channel_counts_once(
    bench: SlackBotHarness,
) -> None:
    question, root = await bench.asked()
    more = {"subtype": "thread_broadcast"}
    await bench.slack.say(BEN, bench.general, "blue", root, more=more, copies=2)
    assert await bench.answer(question) == ("blue", ("ben",))
    assert len((await bench.rt.questions.of_job(question.job))[1]) == 1


async def test_message_outside_the_thread_gets_one_hint(
    bench: SlackBotHarness,
) -> None:
    question, _ = await bench.asked()
    for user in (MALLORY, BEN, BEN):
        await bench.slack.say(user, bench.general, "blue")
    assert await bench.is_open(question)
    (text,) = await bench.ephemeral_texts(BEN)
    assert text.startswith(f"To answer {question.name}, reply in its thread")
    assert await bench.ephemeral_texts(MALLORY) == []


async def test_reply_to_two_open_questions_asks_which_question(
    bench: SlackBotHarness,
) -> None:
    one, root = await bench.asked(OWN_WORDS)
    two, _ = await bench.asked(OWN_WORDS, root=root)
    await bench.slack.say(BEN, bench.general, "because", root)
    assert await bench.is_open(one)
    assert await bench.is_open(two)
    assert await bench.ephemeral_texts(BEN) == ["Which question does this answer?"]
    (message,) = bench.slack.ephemerals(bench.general, BEN)
    await bench.slack.press(BEN, bench.general, message["ts"], one.name)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(BEN)
    await bench.slack.submit(BEN, view["id"])
    assert await bench.answer(one) == ("because", ("ben",))
    assert await bench.is_open(two)


async def test_reply_to_two_questions_of_a_job_answers_the_one_that_accepts_it(
    bench: SlackBotHarness,
) -> None:
    root = (await bench.post("a request"))["ts"]
    other = OWN_WORDS.model_copy(update={"key": "other", "text": "And how?"})
    color = QUESTION.model_copy(update={"key": "color"})
    target = f"slack:{bench.general}/{root}"
    work = await bench.make.asked_at_once(OWN_WORDS, other, color, notify=(target,))
    questions = [await bench.rt.questions.get(work.number, n) for n in (1, 2, 3)]
    await bench.slack.say(BEN, bench.general, "because", root)
    assert await bench.ephemeral_texts(BEN) == ["Which question does this answer?"]
    assert all([await bench.is_open(question) for question in questions])
    (message,) = bench.slack.ephemerals(bench.general, BEN)
    await bench.slack.press(BEN, bench.general, message["ts"], questions[1].name)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(BEN)
    await bench.slack.submit(BEN, view["id"])
    assert await bench.answer(questions[1]) == ("because", ("ben",))
    await bench.make.answer(work.number, "so", n=1)
    await bench.slack.say(BEN, bench.general, "red", root)
    assert await bench.answer(questions[2]) == ("red", ("ben",))
    assert (await bench.rt.read_model.job(work.number)).status is Status.RESUMED


async def test_decision_and_free_text_answer_different_questions(
    bench: SlackBotHarness,
) -> None:
    gate, root = await bench.asked(GATE)
    question, _ = await bench.asked(OWN_WORDS, root=root)
    await bench.slack.say(CAROL, bench.general, "approve", root)
    await bench.slack.say(BEN, bench.general, "because", root)
    assert await bench.answer(gate) == ("approved", ("carol",))
    assert await bench.answer(question) == ("because", ("ben",))


@pytest.mark.parametrize("text", ["approved", "looks good", "approve? no", "yes", "👍"])
async def test_free_text_never_decides_an_approval(bench: SlackBotHarness, text: str) -> None:
    gate, root = await bench.asked(GATE)
    await bench.slack.say(CAROL, bench.general, text, root)
    await bench.slack.say(CAROL, bench.general, text, root)
    assert await bench.is_open(gate)
    messages = await bench.ephemeral_texts(CAROL)
    assert len(messages) == (2 if text in ("approved", "yes") else 1), "talk gets one reply"
    needed = f"{gate.name} needs a decision: reply `@draftsman approve`"
    assert all(message.startswith(needed) for message in messages)


async def test_reply_after_cancel_is_refused_once(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    await bench.rt.job_control.cancel(question.job, bench.make.owner)
    await bench.slack.say(BEN, bench.general, "blue", root)
    (text,) = await bench.ephemeral_texts(BEN)
    verdict = f"{question.name} was already canceled by root (in a terminal)"
    step = f"To run the job again: `/draftsman retry D-{question.job}`"
    assert text == f"Your answer was not accepted: {verdict}. {step}"
    await bench.slack.say(BEN, bench.general, "a pity", root)
    assert len(await bench.ephemeral_texts(BEN)) == 1


async def test_reply_after_decision_or_expiry_is_refused(
    bench: SlackBotHarness, clock: Clock
) -> None:
    done, root = await bench.asked(GATE)
    await bench.slack.say(CAROL, bench.general, "approve", root)
    over, expired_root = await bench.asked(QUESTION.model_copy(update={"expires_in": 3600}))
    await clock.forward(3601)
    await bench.slack.say(DAVE, bench.general, "deny", root)
    await bench.slack.say(BEN, bench.general, "red", expired_root)
    (text,) = await bench.ephemeral_texts(DAVE)
    refused = "Your answer was not accepted:"
    assert text.startswith(f"{refused} {done.name} was already approved by carol, ")
    (text,) = await bench.ephemeral_texts(BEN)
    assert text.startswith(f"{refused} {over.name} expired before this answer arrived, ")
    assert await bench.answer(done) == ("approved", ("carol",))


async def test_talk_after_the_answer_of_another_person_gets_no_reply(
    bench: SlackBotHarness,
) -> None:
    _, root = await bench.asked(OWN_WORDS)
    await bench.slack.say(BEN, bench.general, "blue", root)
    await bench.slack.say(DAVE, bench.general, "thanks, looks good", root)
    assert await bench.ephemeral_texts(DAVE) == []
    _, root = await bench.asked(QUESTION)
    await bench.slack.say(BEN, bench.general, "blue", root)
    await bench.slack.say(DAVE, bench.general, "thanks", root)
    await bench.slack.say(DAVE, bench.general, "red", root)
    (text,) = await bench.ephemeral_texts(DAVE)
    assert text.startswith("Your answer was not accepted: dave may not answer")


async def test_later_replies_of_the_responder_get_no_reply(bench: SlackBotHarness) -> None:
    question, root = await bench.asked()
    await bench.slack.say(BEN, bench.general, "blue", root)
    await bench.slack.say(BEN, bench.general, "thanks", root)
    assert await bench.ephemeral_texts(BEN) == []
    assert len((await bench.rt.questions.of_job(question.job))[1]) == 1


async def test_file_without_text_is_not_an_answer(bench: SlackBotHarness) -> None:
    question, root = await bench.asked(OWN_WORDS)
    more = {"subtype": "file_share", "files": [{"id": "F1", "name": "a.png"}]}
    await bench.slack.say(BEN, bench.general, "", root, more=more)
    (text,) = await bench.ephemeral_texts(BEN)
    assert text == f"{question.name} needs text or a choice: a file is not an answer."
    assert await bench.is_open(question)
    await bench.slack.say(BEN, bench.general, "as drawn", root, more=more)
    assert await bench.answer(question) == ("as drawn", ("ben",))


async def test_external_user_is_refused_in_a_shared_channel(bench: SlackBotHarness) -> None:
    shared = bench.slack.channel("shared", [], shared=True)
    eve = bench.slack.user("eve", id="UEVE", team="T0ELSEWHERE")
    bench.slack.world.channels[shared].members |= {eve, ANNA}
    await bench.slack.mention(eve, shared, "fix it")
    (text,) = await bench.ephemeral_texts(eve, shared)
    assert "another workspace" in text
    await bench.slack.mention(ANNA, shared, "fix this")
    assert await bench.jobs() == ["this"]


async def test_messages_in_other_threads_are_ignored(bench: SlackBotHarness) -> None:
    root = await bench.slack.say(BEN, bench.general, "lunch?")
    await bench.slack.say(MALLORY, bench.general, "approve", root.ts)
    assert await bench.ephemeral_texts(MALLORY) == []
