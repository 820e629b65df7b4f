"""Choices of a question as a checklist of its card."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import parse
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import Action, ActionKind
from draftsman_bots.trello.boards import board_reader
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.deliveries.checklists import MAX_ITEMS
from draftsman_bots.trello.records.board import ChecklistUse
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import card_ticket
from draftsman_testing.factories import GATE, QUESTION, REVIEW
from draftsman_testing.outbox import FAST
from draftsman_testing.trello import FakeTrello, Fault
from draftsman_testing.waits import wait_blocked
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join
from tests.support.clock import Clock
from tests.support.races import hold_commits

OPEN = QuestionStatus.OPEN
ANSWERED = QuestionStatus.ANSWERED
CHECKLISTS = "/cards/{id}/checklists"
ITEMS = "/checklists/{id}/checkItems"


@pytest.fixture(autouse=True)
async def _watch(bench: TrelloBotHarness) -> None:
    await bench.watch(checklists=ChecklistUse.QUESTIONS)


def checklists(bench: TrelloBotHarness, card: str) -> list[dict[str, Any]]:
    """Return the checklists of a card."""
    found: list[dict[str, Any]] = bench.trello.card_now(card)["checklists"]
    return found


async def asked(bench: TrelloBotHarness, ask: QuestionSpec = QUESTION) -> tuple[Question, str, str]:
    """Ask on a new card; return the question, the card and the id of the checklist."""
    card = bench.card()
    question = await bench.ask_question(card, ask, actor=bench.people.anna)
    (checklist,) = checklists(bench, card)
    return question, card, str(checklist["id"])


async def answer(bench: TrelloBotHarness, question: Question, text: str) -> None:
    """Answer in another channel."""
    response = Response(source_event_id=f"slack:{text}", text=text)
    await bench.rt.questions.answer(question.job, 1, response, bench.people.anna)


async def test_a_question_has_a_checklist_with_its_choices(bench: TrelloBotHarness) -> None:
    question, card, _ = await asked(bench)
    (checklist,) = checklists(bench, card)
    tag = str((await bench.rt.read_model.job(question.job)).id)[:8]
    assert checklist["name"] == f"{question.name}: check one item to answer · {tag}"
    assert [item["name"] for item in checklist["checkItems"]] == ["1 · red", "2 · blue"]
    (text,) = [c.text for c in bench.trello.comments(card) if "asks:" in c.text]
    assert "or check an item of the checklist." in text


@pytest.mark.parametrize("route", ["poll", "webhook"])
async def test_checking_an_item_answers_as_the_member(
    bench: TrelloBotHarness, trello: FakeTrello, route: str
) -> None:
    if route == "webhook":
        await bench.serve_webhook()
    question, card, checklist = await asked(bench)
    trello.check_item(checklist, "blue", bench.ben)
    if route == "webhook":
        await bench.deliver_webhooks()
    await bench.poll()
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "blue")
    current = await bench.rt.questions.get(question.job, 1)
    assert current.resolution is not None
    assert current.resolution["by"] == ["ben"]
    assert await bench.notices(card) == [], "the question's own comment says it"
    (closed,) = checklists(bench, card)
    assert closed["name"].startswith(f"{question.name}: was answered by ben: blue · ")
    assert closed["id"] == checklist


async def test_of_two_items_the_first_counts_and_the_other_gets_a_comment(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    question, card, checklist = await asked(bench)
    trello.check_item(checklist, "red", bench.ben)
    trello.check_item(checklist, "blue", bench.anna)
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "red")
    (notice,) = await bench.notices(card)
    refused = f"Your answer was not accepted: {question.name} was already answered by ben, on "
    assert refused in notice
    assert "To see what the job does now, in a terminal: draftsman show D-1" in notice
    await bench.poll()
    assert len(await bench.notices(card)) == 1


async def test_unchecking_later_changes_nothing_and_is_explained_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    question, card, checklist = await asked(bench)
    trello.check_item(checklist, "red", bench.ben)
    await bench.poll()
    for _ in range(2):
        trello.check_item(checklist, "red", bench.anna, checked=False)
        trello.check_item(checklist, "red", bench.ben)
        await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "red")
    explained = [text for text in await bench.notices(card) if "stays answered" in text]
    assert len(explained) == 1
    assert "to uncheck an item changes nothing" in explained[0]


async def test_a_renamed_item_is_no_answer(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    await bench.watch(checklists=ChecklistUse.ALL)
    gate, card, checklist = await asked(bench, GATE)
    for item in trello.world.checklists[checklist].items:
        item["name"] = {"1 · approve": "2 · deny", "2 · deny": "1 · approve"}[item["name"]]
    await join(bench.rt, (carol := trello.member("carol")), bench.people.carol)
    trello.check_item(checklist, "deny", carol)
    await bench.poll()
    assert (await bench.answer_state(gate))[0] is OPEN, "it has the id of `approve`"
    (notice,) = await bench.notices(card)
    assert f"{gate.name}: this item was renamed, so to check it is no answer" in notice
    states = [item["state"] for item in checklists(bench, card)[0]["checkItems"]]
    assert states == ["incomplete", "incomplete"]


async def test_rights_are_those_of_comments_and_the_item_is_unchecked(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    question, card, checklist = await asked(bench)
    trello.check_item(checklist, "red", bench.mallory)
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    (notice,) = await bench.notices(card)
    assert "Your answer was not accepted" in notice
    states = [item["state"] for item in checklists(bench, card)[0]["checkItems"]]
    assert states == ["incomplete", "incomplete"], "so that ben can check it"
    trello.check_item(checklist, "red", bench.ben)
    await bench.poll()
    assert await bench.answer_state(question) == (ANSWERED, "red")


async def test_an_item_of_a_person_and_a_foreign_checklist_answer_nothing(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    question, card, checklist = await asked(bench)
    foreign = trello.add_checklist(card, f"{question.name}: check one item", ["1 · red"])
    trello.check_item(foreign, "red", bench.ben)
    await bench.poll()
    assert (await bench.answer_state(question))[0] is OPEN
    assert await bench.notices(card) == []
    await answer(bench, question, "blue")
    await bench.send_messages()
    assert [entry["id"] for entry in checklists(bench, card)] == [foreign]
    assert checklist != foreign


async def test_the_ticket_of_another_job_has_no_checklist_of_a_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    _, card, checklist = await asked(bench)
    trello.check_item(checklist, "red", bench.ben)
    trello.add_checklist(card, "Steps", ["one"])
    await bench.poll()
    await bench.send_messages()
    full = await card_ticket.fetch_card(bench.context.trello, card)
    ticket = await card_ticket.ticket(bench.context.trello, bench.board, full)
    assert [entry["name"] for entry in ticket["checklists"]] == ["Steps"]


async def test_an_answer_elsewhere_removes_the_checklist(bench: TrelloBotHarness) -> None:
    question, card, checklist = await asked(bench)
    await answer(bench, question, "red")
    await bench.send_messages()
    assert checklists(bench, card) == []
    stored = await boards_of(bench.rt).cards.find_checklist(checklist)
    assert stored is not None
    assert stored.closed_at is not None


@pytest.mark.parametrize("first", ["slack", "checklist"])
async def test_of_an_answer_in_slack_and_a_checked_item_the_first_counts(
    bench: TrelloBotHarness, trello: FakeTrello, conn: Connection, first: str
) -> None:
    question, card, checklist = await asked(bench)
    trello.check_item(checklist, "blue", bench.ben)
    click = Response(source_event_id="slack:click", text="red")
    async with hold_commits(bench.rt) as holder:
        if first == "slack":
            answered = holder.rt.questions.answer(question.job, 1, click, bench.people.anna)
            async with holder.doing(answered):
                await holder.then(bench.poll(), conn)
        else:
            (action,) = [a for a in await _actions(bench) if a.kind is ActionKind.ITEM_CHECKED]
            actor = await bench.rt.people.actor(Actor("trello", bench.ben, "Ben Ono"))
            checked = Response(source_event_id=ids.action_key(action.id), text="blue")
            answered = holder.rt.questions.answer(question.job, 1, checked, actor)
            async with holder.doing(answered):
                other = bench.rt.questions.answer(question.job, 1, click, bench.people.anna)
                assert not (await holder.then(other, conn)).accepted
            await bench.poll()
    value = "red" if first == "slack" else "blue"
    assert await bench.answer_state(question) == (ANSWERED, value)
    notices = await bench.notices(card)
    assert len(notices) == (1 if first == "slack" else 0)
    states = [entry["checkItems"][1]["state"] for entry in checklists(bench, card)]
    assert states == ["complete"], "the checklist names the answer"


async def _actions(bench: TrelloBotHarness) -> list[Action]:
    since = datetime.now(UTC) - timedelta(minutes=5)
    return await board_reader.actions(bench.context.trello, bench.board, since)


async def test_slack_and_the_checklist_at_the_same_time_give_one_answer(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    for turn in range(4):
        question, card, checklist = await asked(bench)
        trello.check_item(checklist, "blue", bench.ben)
        other = Response(source_event_id=f"slack:{turn}", text="red")
        verdict, _ = await asyncio.gather(
            bench.rt.questions.answer(question.job, 1, other, bench.people.anna), bench.poll()
        )
        status, value = await bench.answer_state(question)
        assert status is ANSWERED
        assert value == ("red" if verdict.accepted else "blue")
        notices = await bench.notices(card)
        assert len(notices) == (1 if verdict.accepted else 0)


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.HTML_503])
@pytest.mark.parametrize("path", [CHECKLISTS, ITEMS])
async def test_a_lost_reply_makes_no_second_checklist(
    bench: TrelloBotHarness, trello: FakeTrello, fault: Fault, path: str
) -> None:
    trello.faults.next("POST", path, fault)
    _, card, _ = await asked(bench)
    (checklist,) = checklists(bench, card)
    assert [item["name"] for item in checklist["checkItems"]] == ["1 · red", "2 · blue"]
    assert len([c for c in trello.comments(card) if "asks:" in c.text]) == 1


async def test_a_bot_killed_before_it_stored_the_checklist_makes_no_second(
    bench: TrelloBotHarness, trello: FakeTrello, clock: Clock, conn: Connection
) -> None:
    card = bench.card()
    work = await bench.make.asked(notify=(f"trello:{card}",), actor=bench.people.anna)
    channel = TrelloChannel(
        bench.context.trello, boards_of(bench.rt), cards=boards_of(bench.rt).cards
    )
    sender = DeliverySender(
        db=bench.rt.db, policy=bench.rt.policy, settings=FAST, fallback=parse("log")
    )
    async with bench.rt.db.connection() as holder, holder.transaction():
        await holder.execute("LOCK TABLE draftsman.trello_checklists IN EXCLUSIVE MODE")
        sending = asyncio.create_task(_send_all(sender, channel))
        await wait_blocked(conn, by=holder.info.backend_pid)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    (made,) = checklists(bench, card)
    assert await boards_of(bench.rt).cards.checklist(card, work.number, 1) is None
    await clock.forward(FAST.lease + 1, while_in_flight=True)
    await bench.send_messages()
    (only,) = checklists(bench, card)
    assert only == made
    trello.check_item(only["id"], "red", bench.ben)
    await bench.poll()
    question = await bench.rt.questions.get(work.number, 1)
    assert await bench.answer_state(question) == (ANSWERED, "red")
    assert len([c for c in trello.comments(card) if " asked:" in c.text]) == 0
    await bench.send_messages()
    assert len([c for c in trello.comments(card) if " asked:" in c.text]) == 1


async def _send_all(sender: DeliverySender, channel: TrelloChannel) -> None:
    """Send the due deliveries, one after the other."""
    while items := await sender.claim("trello", free=1, share=1):
        for item in items:
            await sender.record(item, await sender.send(item, channel))


async def test_approvals_have_checklists_only_if_the_board_says_so(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    await bench.ask_question(card, GATE)
    assert checklists(bench, card) == []
    await bench.watch(checklists=ChecklistUse.ALL)
    gate, card, checklist = await asked(bench, GATE)
    (entry,) = checklists(bench, card)
    assert [item["name"] for item in entry["checkItems"]] == ["1 · approve", "2 · deny"]
    assert "to request changes" not in entry["name"], "nobody would make them"
    await join(bench.rt, (carol := trello.member("carol")), bench.people.carol)
    trello.check_item(checklist, "approve", carol)
    await bench.poll()
    assert await bench.answer_state(gate) == (ANSWERED, "approved")


async def test_the_checklist_of_an_approval_of_work_says_how_to_request_changes(
    bench: TrelloBotHarness,
) -> None:
    await bench.watch(checklists=ChecklistUse.ALL)
    review, card, _ = await asked(bench, REVIEW)
    (entry,) = checklists(bench, card)
    how = "check one item to answer; to request changes, comment: request changes TEXT"
    assert entry["name"].startswith(f"{review.name}: {how} · ")


async def test_many_choices_or_none_have_no_checklist(bench: TrelloBotHarness) -> None:
    many = [str(number) for number in range(MAX_ITEMS + 1)]
    for ask in (
        QuestionSpec(key="pick", text="Which?", choices=tuple(many)),
        QuestionSpec(key="how", text="How?", freeform=True),
    ):
        card = bench.card()
        await bench.ask_question(card, ask)
        assert checklists(bench, card) == []
        assert "checklist" not in bench.trello.comments(card)[-1].text


async def test_a_board_at_its_limit_still_gets_the_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    for number in range(500):
        trello.add_checklist(card, f"list {number}")
    await bench.ask_question(card)
    assert len([c for c in trello.comments(card) if "asks:" in c.text]) == 1
    assert len(checklists(bench, card)) == 500
