"""Answers from comments on a card."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman_bots.trello.deliveries.markdown import with_marker
from draftsman_bots.trello.requests.requesters import board_actor
from draftsman_testing.factories import GATE, QUESTION
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join

OPEN = QuestionStatus.OPEN
ANSWERED = QuestionStatus.ANSWERED
FREE: Final = QuestionSpec(key="how", text="How?", choices=("fast", "well"), freeform=True)


ANSWERS = [
    ("2", "blue"),
    ("RED", "red"),
    ("/answer 1", "red"),
    ("/answer {question} blue", "blue"),
    ("@draftsmanbot red", "red"),
    ("> /answer blue\n\nred\nbecause", "red"),
    ("```\nred\n```\nblue", "blue"),
]


async def test_comment_with_a_choice_answers_the_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    me = trello.username(trello.bot_member)
    asked = []
    for text, value in ANSWERS:
        card = bench.card()
        question = await bench.ask_question(card)
        comment = text.replace("draftsmanbot", me).replace("{question}", question.name)
        trello.comment(card, bench.ben, comment)
        asked.append((text, value, card, question))
    await bench.poll()
    for text, value, card, question in asked:
        assert await bench.answer_state(question) == (ANSWERED, value), text
        assert await bench.notices(card) == [], "the question's own comment says it"


async def test_a_comment_that_fits_two_questions_of_a_job_answers_neither(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    other = QUESTION.model_copy(update={"key": "other", "text": "Which other?"})
    work = await bench.make.asked_at_once(QUESTION, other, notify=(f"trello:{card}",))
    await bench.send_messages()
    asked = [comment.text for comment in trello.comments(card) if "asks:" in comment.text]
    assert len(asked) == 2
    one, two = [await bench.rt.questions.get(work.number, n) for n in (1, 2)]
    trello.comment(card, bench.ben, "red")
    await bench.poll()
    assert [(await bench.answer_state(question))[0] for question in (one, two)] == [OPEN] * 2
    (notice,) = await bench.notices(card)
    assert "Which question does this answer: " in notice
    assert one.name in notice
    assert two.name in notice
    trello.comment(card, bench.ben, f"/answer {two.name} blue")
    await bench.poll()
    assert await bench.answer_state(two) == (ANSWERED, "blue")
    trello.comment(card, bench.ben, "red")
    await bench.poll()
    assert await bench.answer_state(one) == (ANSWERED, "red")


async def test_unknown_choice_gets_a_reply_and_keeps_the_question_open(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card)
    [asked] = [comment.text for comment in trello.comments(card) if "asks:" in comment.text]
    trello.comment(card, bench.ben, "7")
    trello.comment(card, bench.ben, "/answer purple")
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    assert [comment.text for comment in trello.comments(card) if "asks:" in comment.text] == [asked]
    notices = await bench.notices(card)
    assert len(notices) == 2
    assert all("red" in notice and "blue" in notice for notice in notices)
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")


async def test_a_second_answer_of_a_person_is_already_recorded(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await join(bench.rt, (carol := trello.member("carol")), bench.people.carol)
    card = bench.card()
    gate = await bench.ask_question(card, GATE.model_copy(update={"quorum": 2}))
    trello.comment(card, carol, "approve")
    await bench.poll()
    trello.comment(card, carol, "approve")
    await bench.poll()
    assert (await bench.answer_state(gate))[0] is OPEN
    first, second = await bench.notices(card)
    assert "recorded: 1 of 2 approvals" in first
    assert f"{gate.name}: your approval is already recorded, 1 of 2." in second
    other = bench.card()
    question = await bench.ask_question(other)
    for text in ("2", "1", "thanks"):
        trello.comment(other, bench.ben, text)
        await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")
    [notice] = await bench.notices(other)
    assert f"{question.name}: your answer is already recorded: blue." in notice


async def test_quoted_text_and_mentions_of_others_are_not_answers(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card)
    for text in ("what do they mean?", "@anna 2", "> 2", "    2", "```\n2\n```", "@bot2 2"):
        trello.comment(card, bench.ben, text)
        await bench.poll()
        assert (await bench.answer_state(question))[0] is OPEN, text
    assert await bench.notices(card) == []


async def test_free_text_answers_a_free_text_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, FREE)
    trello.comment(card, bench.mallory, "let us talk about it")
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    trello.comment(card, bench.ben, "@draftsmanbot /paus the parser is broken")
    trello.comment(card, bench.mallory, "/lgtm")
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    (notice,) = await bench.notices(card)
    assert "/paus is no command; did you mean" in notice
    assert "/pause …" in notice
    trello.comment(card, bench.ben, "slowly\n> quoted\nand with care")
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "slowly\nand with care")
    assert await bench.notices(card) == [notice]


@pytest.mark.parametrize("text", ["/etc/hosts", "/answer /etc"])
async def test_a_path_answers_a_free_text_question(
    bench: TrelloBotHarness, trello: FakeTrello, text: str
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, FREE)
    trello.comment(card, bench.ben, text)
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, text.removeprefix("/answer "))


async def test_approval_needs_the_exact_word(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    for name in ("carol", "dave"):
        await join(bench.rt, trello.member(name), getattr(bench.people, name))
    carol = next(id for id, one in trello.world.members.items() if one.name == "carol")
    card = bench.card()
    question = await bench.ask_question(card, GATE)
    for text in ("yes", "approved!", "I approve", "/answer approve it", "/approve now"):
        trello.comment(card, carol, text)
    trello.comment(card, bench.ben, "approve")
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    notices = await bench.notices(card)
    needed = "D-1/1 needs a decision: reply approve or deny REASON"
    assert sum(needed in notice for notice in notices) == 4, "talk gets no reply"
    assert any("may not approve" in notice for notice in notices)
    trello.comment(card, carol, "deny not before noon")
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "denied")
    [answered] = await bench.job_events(question, "answer_received")
    assert "not before noon" in str(answered)


async def test_replayed_webhooks_change_nothing(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    first = await bench.ask_question(card)
    trello.comment(card, bench.ben, "2")
    trello.archive(card)
    trello.unarchive(card)
    trello.add_label(bench.card(), bench.label)
    await bench.deliver_webhooks()
    assert await bench.answer_state(first) == (ANSWERED, "blue")
    jobs = await bench.keys()
    trello.later(90 * 86_400)
    second = await bench.ask_question(card, key="later")
    assert {ack.status for ack in await bench.deliver_webhooks(replay=True, copies=2)} == {200}
    await bench.poll()
    assert (await bench.answer_state(second))[0] is OPEN
    assert sorted([*jobs, "later"]) == await bench.keys()
    assert await bench.notices(card) == []


async def test_own_comments_are_not_answers(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card, FREE)
    trello.comment(card, trello.bot_member, "fast")
    trello.comment(card, bench.ben, with_marker("fast", "0" * 8 + "-0000-4000-8000-" + "0" * 12))
    await bench.deliver_webhooks()
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN


async def test_comment_edit_answers_before_acceptance_only(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card)
    comment = trello.comment(card, bench.ben, "hm")
    await bench.deliver_webhooks()
    trello.edit_comment(comment, "2")
    await bench.deliver_webhooks(copies=2)
    assert await bench.answer_state(question) == (ANSWERED, "blue")
    trello.edit_comment(comment, "1")
    await bench.deliver_webhooks(copies=2)
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")
    assert [action["text"] for action in await bench.job_events(question, "answer_edited")] == ["1"]
    notice, *more = await bench.notices(card)
    assert more == []
    assert f"your answer to {question.name} was already accepted. Editing" in notice
    assert len(await bench.job_events(question, "answer_received")) == 1


async def test_comment_with_two_open_questions_asks_which_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    first = await bench.ask_question(card)
    second = await bench.ask_question(card)
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert {(await bench.answer_state(question))[0] for question in (first, second)} == {OPEN}
    [notice] = await bench.notices(card)
    assert f"{second.name}, {first.name}" in notice
    trello.comment(card, bench.ben, f"/answer {first.name} 2")
    await bench.poll()
    assert await bench.answer_state(first) == (ANSWERED, "blue")
    assert (await bench.answer_state(second))[0] is OPEN
    trello.comment(card, bench.ben, "/answer D-99/1 2")
    await bench.poll()
    assert "D-99 is not a job of this card" in (await bench.notices(card))[-1]


async def test_late_comment_reply_names_the_member_who_answered(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    invoker = Actor("trello", bench.mallory, "Mallory", roles=frozenset({"invoker"}))
    question = await bench.ask_question(card, actor=invoker)
    trello.comment(card, bench.mallory, "2")
    trello.comment(card, bench.ben, "1")
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")
    [reply] = await bench.notices(card)
    assert trello.username(bench.mallory) in reply
    assert bench.mallory not in reply


async def test_simultaneous_comments_accept_one(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card, actor=bench.people.anna)
    trello.comment(card, bench.ben, "1")
    trello.comment(card, bench.anna, "2")
    await bench.deliver_webhooks(copies=3, together=True)
    status, value = await bench.answer_state(question)
    assert (status, value in ("red", "blue")) == (ANSWERED, True)
    assert len(await bench.job_events(question, "answer_received")) == 1
    [notice] = await bench.notices(card)
    assert "was not accepted" in notice


async def test_comment_and_terminal_answer_at_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card, actor=bench.people.anna)
    trello.comment(card, bench.anna, "2")
    given = Response(source_event_id="cli:1", text="red")
    verdict, _ = await asyncio.gather(
        bench.rt.questions.answer(question.job, 1, given, bench.people.ben),
        bench.deliver_webhooks(),
    )
    status, value = await bench.answer_state(question)
    assert (status, value) == (ANSWERED, "red" if verdict.accepted else "blue")
    assert len(await bench.job_events(question, "answer_received")) == 1
    assert len(await bench.notices(card)) == verdict.accepted


async def test_image_is_not_an_answer(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    card = bench.card()
    question = await bench.ask_question(card, FREE)
    trello.comment(card, bench.ben, "![image.png](https://trello.com/1/cards/x/image.png)")
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    [notice] = await bench.notices(card)
    assert "a file is not an answer" in notice


async def test_comment_before_a_question_does_not_answer_it(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    trello.comment(card, bench.ben, "2")
    trello.later(2)
    question = await bench.ask_question(card)
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN


async def test_question_of_a_board_job_mentions_its_responders(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, actor=board_actor(await bench.watch()))
    [shown] = [comment.text for comment in trello.comments(card) if "asks:" in comment.text]
    assert bench.board not in shown
    assert f"For @{trello.username(bench.ben)}" in shown
    trello.comment(card, bench.ben, "2")
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")
