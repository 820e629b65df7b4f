"""Answers from comments on a card."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from draftsman.domain.answer import Response
from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.question import QuestionSpec, QuestionStatus
from draftsman_bots.trello.markdown import with_marker
from draftsman_bots.trello.usecases.label_jobs import board_actor
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join
from tests.factories import GATE
from tests.support.trello import FakeTrello

OPEN, ANSWERED = QuestionStatus.OPEN, QuestionStatus.ANSWERED
FREE: Final = QuestionSpec(key="how", text="How?", choices=("fast", "well"), freeform=True)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("2", "blue"),
        ("RED", "red"),
        ("/answer 1", "red"),
        ("/answer D-1/1 blue", "blue"),
        ("@draftsmanbot red", "red"),
        ("> /answer blue\n\nred\nbecause", "red"),
        ("```\nred\n```\nblue", "blue"),
    ],
)
async def test_a_comment_names_a_choice(
    bench: TrelloBotHarness, trello: FakeTrello, said: str, value: str
) -> None:
    card = bench.card()
    question = await bench.asked(card)
    me = trello.username(trello.bot_member)
    trello.comment(card, bench.ben, said.replace("draftsmanbot", me))
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, value)
    assert await bench.told(card) == [], "the question's own comment says it"


async def test_an_unknown_choice_is_told_and_keeps_the_question_open(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.asked(card)
    [asked] = [one.text for one in trello.comments(card) if "asks:" in one.text]
    trello.comment(card, bench.ben, "7")
    trello.comment(card, bench.ben, "/answer purple")
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    assert [one.text for one in trello.comments(card) if "asks:" in one.text] == [asked]
    told = await bench.told(card)
    assert len(told) == 2
    assert all("red" in one and "blue" in one for one in told)
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "blue")


async def test_a_second_answer_of_a_person_is_already_recorded(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await join(bench.rt, (carol := trello.member("carol")), bench.people.carol)
    card = bench.card()
    gate = await bench.asked(card, GATE.model_copy(update={"quorum": 2}))
    trello.comment(card, carol, "approve")
    await bench.poll()
    trello.comment(card, carol, "approve")
    await bench.poll()
    assert (await bench.now(gate))[0] is OPEN
    first, second = await bench.told(card)
    assert "your approval was recorded, 1 of 2" in first
    assert f"{gate.name}: your approval is already recorded, 1 of 2." in second
    other = bench.card()
    question = await bench.asked(other)
    for said in ("2", "1", "thanks"):
        trello.comment(other, bench.ben, said)
        await bench.poll()
    assert await bench.now(question) == (ANSWERED, "blue")
    [said] = await bench.told(other)
    assert f"{question.name}: your answer is already recorded: blue." in said


@pytest.mark.parametrize(
    "said", ["what do they mean?", "@anna 2", "> 2", "    2", "```\n2\n```", "@bot2 2"]
)
async def test_quoted_text_and_mentions_of_others_are_not_answers(
    bench: TrelloBotHarness, trello: FakeTrello, said: str
) -> None:
    card = bench.card()
    question = await bench.asked(card)
    trello.comment(card, bench.ben, said)
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    assert await bench.told(card) == []


async def test_words_of_ones_own_count_where_a_question_takes_them(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.asked(card, FREE)
    trello.comment(card, bench.mallory, "let us talk about it")
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    trello.comment(card, bench.ben, "slowly\n> quoted\nand with care")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "slowly\nand with care")
    assert await bench.told(card) == []


async def test_a_gate_is_decided_by_its_words_alone(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    for name in ("carol", "dave"):
        await join(bench.rt, trello.member(name), getattr(bench.people, name))
    carol = next(id for id, one in trello.world.members.items() if one.name == "carol")
    card = bench.card()
    question = await bench.asked(card, GATE)
    for said in ("yes", "approve!", "I approve", "/answer approve it", "/approve now"):
        trello.comment(card, carol, said)
    trello.comment(card, bench.ben, "approve")
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    told = await bench.told(card)
    assert any("D-1/1 needs an approval" in one for one in told)
    assert any("may not approve" in one for one in told)
    trello.comment(card, carol, "deny not before noon")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "denied")
    [answered] = await bench.job_events(question, "answer_received")
    assert "not before noon" in str(answered)


async def test_replayed_webhooks_change_nothing(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    first = await bench.asked(card)
    trello.comment(card, bench.ben, "2")
    trello.archive(card)
    trello.unarchive(card)
    trello.add_label(bench.card(), bench.label)
    await bench.hear()
    assert await bench.now(first) == (ANSWERED, "blue")
    jobs = await bench.keys()
    trello.later(90 * 86_400)
    second = await bench.asked(card, key="later")
    assert {ack.status for ack in await bench.hear(replay=True, copies=2)} == {200}
    await bench.poll()
    assert (await bench.now(second))[0] is OPEN
    assert sorted([*jobs, "later"]) == await bench.keys()
    assert await bench.told(card) == []


async def test_own_comments_are_not_answers(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    await bench.listen()
    card = bench.card()
    question = await bench.asked(card, FREE)
    trello.comment(card, trello.bot_member, "fast")
    trello.comment(card, bench.ben, with_marker("fast", "0" * 8 + "-0000-4000-8000-" + "0" * 12))
    await bench.hear()
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN


async def test_comment_edit_answers_before_acceptance_only(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    question = await bench.asked(card)
    comment = trello.comment(card, bench.ben, "hm")
    await bench.hear()
    trello.edit_comment(comment, "2")
    await bench.hear(copies=2)
    assert await bench.now(question) == (ANSWERED, "blue")
    trello.edit_comment(comment, "1")
    await bench.hear(copies=2)
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "blue")
    assert [one["text"] for one in await bench.job_events(question, "answer_edited")] == ["1"]
    said, *more = await bench.told(card)
    assert more == []
    assert f"your answer to {question.name} was already accepted. Editing" in said
    assert len(await bench.job_events(question, "answer_received")) == 1


async def test_deleted_comment_keeps_its_answer(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    question = await bench.asked(card)
    comment = trello.comment(card, bench.ben, "2")
    await bench.hear()
    trello.delete_comment(comment)
    await bench.hear(copies=2)
    assert await bench.now(question) == (ANSWERED, "blue")
    assert len(await bench.job_events(question, "answer_deleted")) == 1


async def test_comment_with_two_open_questions_asks_which_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    first, second = await bench.asked(card), await bench.asked(card)
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert {(await bench.now(one))[0] for one in (first, second)} == {OPEN}
    [said] = await bench.told(card)
    assert f"{second.name}, {first.name}" in said
    trello.comment(card, bench.ben, f"/answer {first.name} 2")
    await bench.poll()
    assert await bench.now(first) == (ANSWERED, "blue")
    assert (await bench.now(second))[0] is OPEN
    trello.comment(card, bench.ben, "/answer D-99/1 2")
    await bench.poll()
    assert "D-99 has no question on this card" in (await bench.told(card))[-1]


async def test_late_comment_is_refused_with_the_reason(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.asked(card, actor=bench.people.anna)
    await bench.make.answer(question.job, "red", bench.people.ben)
    trello.comment(card, bench.ben, "thanks")
    trello.comment(card, bench.anna, "2")
    trello.comment(card, bench.anna, "and now?")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "red")
    [said] = await bench.told(card)
    assert f"{question.name} was already answered by ben" in said


async def test_late_comment_names_the_member_that_was_first(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    invoker = Actor(Source.TRELLO, bench.mallory, "Mallory", roles=frozenset({"invoker"}))
    question = await bench.asked(card, actor=invoker)
    trello.comment(card, bench.mallory, "2")
    trello.comment(card, bench.ben, "1")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "blue")
    [reply] = await bench.told(card)
    assert trello.username(bench.mallory) in reply
    assert bench.mallory not in reply


async def test_simultaneous_comments_accept_one(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    question = await bench.asked(card, actor=bench.people.anna)
    trello.comment(card, bench.ben, "1")
    trello.comment(card, bench.anna, "2")
    await bench.hear(copies=3, together=True)
    status, value = await bench.now(question)
    assert (status, value in ("red", "blue")) == (ANSWERED, True)
    assert len(await bench.job_events(question, "answer_received")) == 1
    [said] = await bench.told(card)
    assert "was not accepted" in said


async def test_comment_and_terminal_answer_at_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    question = await bench.asked(card, actor=bench.people.anna)
    trello.comment(card, bench.anna, "2")
    given = Response(source_event_id="cli:1", text="red")
    verdict, _ = await asyncio.gather(
        bench.rt.questions.answer(question.job, 1, given, bench.people.ben), bench.hear()
    )
    status, value = await bench.now(question)
    assert (status, value) == (ANSWERED, "red" if verdict.accepted else "blue")
    assert len(await bench.job_events(question, "answer_received")) == 1
    assert len(await bench.told(card)) == verdict.accepted


async def test_image_is_not_an_answer(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    card = bench.card()
    question = await bench.asked(card, FREE)
    trello.comment(card, bench.ben, "![image.png](https://trello.com/1/cards/x/image.png)")
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    [said] = await bench.told(card)
    assert "a file is not an answer" in said


async def test_comment_without_permission_is_refused(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.asked(card)
    trello.comment(card, bench.mallory, "2")
    for _ in range(2):
        await bench.poll()
    assert (await bench.now(question))[0] is OPEN
    [said] = await bench.told(card)
    assert "may not answer" in said
    assert len(await bench.job_events(question, "answer_refused")) == 1


async def test_what_was_said_before_a_question_does_not_answer_it(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    trello.comment(card, bench.ben, "2")
    trello.later(2)
    question = await bench.asked(card)
    await bench.poll()
    assert (await bench.now(question))[0] is OPEN


async def test_a_question_of_a_board_s_own_job_is_for_whoever_may_answer(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.asked(card, actor=board_actor(await bench.watch()))
    [shown] = [one.text for one in trello.comments(card) if "asks:" in one.text]
    assert bench.board not in shown
    assert f"For @{trello.username(bench.ben)}" in shown
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert await bench.now(question) == (ANSWERED, "blue")
