"""Reactions as answers: opted in by the author of a question, or by the settings for approvals."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman.questions.question_spec import QuestionSpec
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.questions.reactions import KEPT, NOT_CONFIGURED, SHARED, Reaction
from draftsman_bots.slack.scopes import FULL, MINIMAL
from draftsman_testing.factories import GATE, QUESTION
from tests.bots.slack.channel_fixtures import message
from tests.bots.slack.listeners.conftest import (
    BEN,
    CAROL,
    MALLORY,
    MENTIONS,
    Seen,
    SlackBotHarness,
)
from tests.support.cases import cases

EMOJI = QuestionSpec(
    key="ship",
    text="Ship it?",
    choices=(
        {"value": "yes", "label": "Ship", "emoji": "thumbsup"},
        {"value": "no", "label": "Wait", "emoji": "-1"},
        "later",
    ),
)


async def shown(bench: SlackBotHarness, seen: Seen, spec: QuestionSpec) -> tuple[Question, str]:
    """Ask a question and wait for its message; return it and the ts of the message."""
    question, root = await bench.asked(spec)
    message = await seen(bench.general, root, spec.text)
    return question, message["ts"]


async def test_a_reaction_chooses_the_answer_once(bench: SlackBotHarness, seen: Seen) -> None:
    question, ts = await shown(bench, seen, EMOJI)
    await bench.slack.react(BEN, bench.general, ts, "tada")
    assert await bench.is_open(question), "no choice has it"
    await bench.slack.react(BEN, bench.general, ts, "+1::skin-tone-3", copies=3)
    assert await bench.answer(question) == ("yes", ("ben",))
    _, answers = await bench.rt.questions.of_job(question.job)
    assert len(answers) == 1
    await bench.slack.react(BEN, bench.general, ts, "-1")
    assert "already recorded: Ship" in (await bench.ephemeral_texts(BEN))[-1]


async def test_a_removed_reaction_does_not_undo_the_answer(
    bench: SlackBotHarness, seen: Seen
) -> None:
    question, ts = await shown(bench, seen, EMOJI)
    await bench.slack.react(BEN, bench.general, ts, "-1", removed=True)
    assert await bench.ephemeral_texts(BEN) == []
    await bench.slack.react(BEN, bench.general, ts, "-1")
    await bench.slack.react(BEN, bench.general, ts, "-1", removed=True, copies=2)
    assert await bench.answer(question) == ("no", ("ben",))
    assert await bench.ephemeral_texts(BEN) == [KEPT.format(question.name)]


async def test_a_question_without_emoji_takes_no_reaction(
    bench: SlackBotHarness, seen: Seen
) -> None:
    question, ts = await shown(bench, seen, QUESTION)
    await bench.slack.react(BEN, bench.general, ts, "+1")
    await bench.slack.react(BEN, bench.general, ts, "one")
    assert await bench.is_open(question)


@pytest.mark.parametrize("user", [CAROL, MALLORY])
async def test_only_people_with_the_right_answer(
    bench: SlackBotHarness, seen: Seen, user: str
) -> None:
    question, ts = await shown(bench, seen, EMOJI)
    await bench.slack.react(user, bench.general, ts, "+1")
    assert await bench.is_open(question)
    assert len(await bench.ephemeral_texts(user)) == 1
    (reply,) = bench.slack.ephemerals(bench.general, user)
    replies = bench.slack.messages(bench.general, reply["thread_ts"])
    assert ts in [message["ts"] for message in replies], "it is in the thread of the question"


async def test_an_approval_takes_no_reaction_unless_configured(
    bench: SlackBotHarness, seen: Seen
) -> None:
    gate, ts = await shown(bench, seen, GATE)
    for emoji in ("+1", "-1", "eyes"):
        await bench.slack.react(CAROL, bench.general, ts, emoji)
    assert await bench.is_open(gate)
    assert await bench.ephemeral_texts(CAROL) == [NOT_CONFIGURED.format(gate.name)]
    bench.limit(reaction_approvals=True)
    await bench.slack.react(BEN, bench.general, ts, "+1")
    assert await bench.is_open(gate), "ben is no approver"
    await bench.slack.react(CAROL, bench.general, ts, "white_check_mark")
    assert await bench.answer(gate) == ("approved", ("carol",))


async def test_a_reaction_to_a_notice_about_a_question_is_no_answer(
    bench: SlackBotHarness, seen: Seen
) -> None:
    bench.limit(reaction_approvals=True)
    gate, root = await bench.asked(GATE)
    await seen(bench.general, root, GATE.text)
    carol = await bench.rt.people.actor(Actor("slack", CAROL, "Carol"))
    await bench.rt.acknowledgments.acknowledge(gate.job, gate.ordinal, carol, 3600)
    notice = await seen(bench.general, root, "works on the answer")
    await bench.slack.react(CAROL, bench.general, notice["ts"], "+1")
    assert await bench.is_open(gate)


async def test_a_reaction_in_a_shared_channel_is_no_answer(
    bench: SlackBotHarness, seen: Seen
) -> None:
    question, ts = await shown(bench, seen, EMOJI)
    bench.slack.world.channels[bench.general].shared = True
    await bench.slack.react(BEN, bench.general, ts, "+1")
    assert await bench.is_open(question)
    assert await bench.ephemeral_texts(BEN) == [SHARED]


async def test_a_reaction_in_a_shared_direct_conversation_is_no_answer(
    bench: SlackBotHarness, seen: Seen
) -> None:
    direct = bench.slack.direct(BEN)
    number = (await bench.make.asked(EMOJI, notify=(f"slack:{direct}",))).number
    question = await bench.rt.questions.get(number, 1)
    status = await seen(direct, None, f"D-{number}")
    message = await seen(direct, status["ts"], EMOJI.text)
    bench.slack.world.channels[direct].shared = True
    await bench.slack.react(BEN, direct, message["ts"], "+1")
    assert await bench.is_open(question)
    bench.slack.world.channels[direct].shared = False
    await bench.slack.react(BEN, direct, message["ts"], "+1")
    assert await bench.answer(question) == ("yes", ("ben",))


async def test_the_minimal_manifest_has_no_reactions(bench: SlackBotHarness, seen: Seen) -> None:
    question, ts = await shown(bench, seen, EMOJI)
    bench.slack.subscribed = set(MENTIONS)
    await bench.slack.react(BEN, bench.general, ts, "+1")
    assert await bench.is_open(question)


def test_two_choices_have_different_emoji_with_plain_names() -> None:
    for emoji in (("tada", "tada"), (":tada:", "x"), ("<!here>", "x")):
        choices: list[Any] = [{"value": name, "emoji": name} for name in emoji]
        choices[1]["value"] = "other"
        with pytest.raises(ValidationError):
            QuestionSpec(key="k", text="t", choices=choices)


@cases(
    "event",
    [
        {},
        {"user": "U1", "reaction": "+1", "item": {"type": "file", "file": "F1"}},
        {"user": "U1", "reaction": "+1", "item": None},
        {"user": 1, "reaction": "+1", "item": {"type": "message", "channel": "C1", "ts": "1.2"}},
    ],
)
def test_other_reactions_are_ignored(event: dict[str, Any]) -> None:
    body = {"event": {"type": "reaction_added", **event}}
    assert not Reaction.model_validate(body).is_to_message


@pytest.mark.parametrize(
    ("spec", "scopes", "approvals", "hint"),
    [
        (EMOJI, FULL, False, "React with :thumbsup: Ship · :-1: Wait"),
        (EMOJI, MINIMAL, True, ""),
        (QUESTION, FULL, True, ""),
        (GATE, FULL, True, "React with :+1: approve · :-1: deny"),
        (GATE, FULL, False, ""),
        (GATE, MINIMAL, True, ""),
    ],
)
async def test_a_message_names_the_reactions_that_count(
    bench: SlackBotHarness, spec: QuestionSpec, scopes: tuple[str, ...], approvals: bool, hint: str
) -> None:
    identity = Identity(scopes=frozenset(scopes))
    channel = SlackChannel(
        bench.ctx.client, timeout=5, identity=identity, reaction_approvals=approvals
    )
    question, _ = await bench.asked(spec)
    await channel.send(message(DeliveryKind.QUESTION, bench.general, question=question))
    asked = str(bench.slack.messages(bench.general)[-1]["blocks"])
    assert ("React with" in asked, hint in asked) == (bool(hint), True)
