"""Due dates that show the expiry of a card's questions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from draftsman.database.database import Connection
from draftsman.formats.times import spelled_time
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import Question, QuestionStatus
from draftsman.questions.response import Response
from draftsman_bots.trello.boards.poller import Poller
from draftsman_bots.trello.deliveries.due_dates import show_expiry
from draftsman_bots.trello.ids import parse_time
from draftsman_bots.trello.records.cards import CardDueDate
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import QUESTION
from draftsman_testing.trello import FakeTrello, Fault, error
from draftsman_testing.waits import wait_blocked
from tests.bots.trello.channel_fixtures import account_of
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join
from tests.support.clock import Clock
from tests.support.races import hold_commits

OPEN = QuestionStatus.OPEN
HOUR = 3600.0
SOON = QUESTION.model_copy(update={"expires_in": HOUR})
LATER = QUESTION.model_copy(update={"key": "later", "expires_in": 5 * HOUR})
EARLIER = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=90)
DUE = "/cards/{id}/{field}"


@pytest.fixture(autouse=True)
async def _watch(bench: TrelloBotHarness) -> None:
    await bench.watch(due_dates=True)
    await join(bench.rt, bench.trello.member("olga"), bench.people.olga)


def due(bench: TrelloBotHarness, card: str) -> datetime | None:
    """Return the due date of a card."""
    return parse_time(bench.trello.card_now(card)["due"])


def is_expiry(bench: TrelloBotHarness, card: str, question: Question) -> bool:
    """Return whether the due date of a card is the expiry of a question."""
    shown = due(bench, card)
    assert question.expires_at is not None
    return shown is not None and abs(shown - question.expires_at) <= timedelta(seconds=0.5)


async def answer(bench: TrelloBotHarness, question: Question, text: str = "red") -> None:
    """Answer in another channel."""
    response = Response(source_event_id=f"slack:{question.name}", text=text)
    verdict = await bench.rt.questions.answer(question.job, 1, response, bench.people.ben)
    assert verdict.accepted
    await bench.send_messages()


def olga(bench: TrelloBotHarness) -> str:
    """Return the member with the role operator."""
    return next(id for id, m in bench.trello.world.members.items() if m.name == "olga")


@pytest.mark.parametrize("earlier", [None, EARLIER])
async def test_the_due_date_is_the_expiry_and_is_put_back(
    bench: TrelloBotHarness, trello: FakeTrello, earlier: datetime | None
) -> None:
    card = bench.card()
    trello.set_due(card, earlier)
    question = await bench.ask_question(card, SOON)
    assert is_expiry(bench, card, question)
    await bench.poll()
    assert await bench.notices(card) == [], "the change of the bot is no answer"
    await answer(bench, question)
    assert due(bench, card) == earlier
    assert await boards_of(bench.rt).cards.due_date(card) is None


async def test_a_board_without_the_setting_keeps_its_due_dates(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.watch()
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    assert due(bench, card) is None
    trello.set_due(card, EARLIER, olga(bench))
    await bench.poll()
    assert (await bench.rt.questions.get(question.job, 1)).expires_at == question.expires_at


async def test_of_two_questions_the_first_expiry_is_shown(bench: TrelloBotHarness) -> None:
    card = bench.card()
    later, sooner = [await bench.ask_question(card, ask) for ask in (LATER, SOON)]
    assert is_expiry(bench, card, sooner)
    await answer(bench, sooner)
    assert is_expiry(bench, card, later)
    await answer(bench, later)
    assert due(bench, card) is None


@pytest.mark.parametrize("route", ["poll", "webhook"])
async def test_a_later_due_date_extends_the_question(
    bench: TrelloBotHarness, trello: FakeTrello, route: str
) -> None:
    if route == "webhook":
        await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    trello.set_due(card, EARLIER, olga(bench))
    if route == "webhook":
        await bench.deliver_webhooks()
    await bench.poll()
    await bench.poll()
    current = await bench.rt.questions.get(question.job, 1)
    assert is_expiry(bench, card, current)
    assert due(bench, card) == EARLIER
    assert len(await bench.job_events(question, "question_extended")) == 1
    (notice,) = await bench.notices(card)
    assert f"olga: {question.name} now expires at {spelled_time(EARLIER)}." in notice
    await answer(bench, question)
    assert due(bench, card) == EARLIER, "a person chose it"


async def test_at_the_rate_limit_a_moved_due_date_is_left_to_the_poll(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    await bench.deliver_webhooks()
    trello.set_due(card, EARLIER, olga(bench))
    trello.faults.next("GET", "/cards/{id}", error(429, "Rate limit exceeded"))
    (ack,) = await bench.deliver_webhooks()
    assert ack.status == 200
    assert (await bench.rt.questions.get(question.job, 1)).expires_at == question.expires_at
    async with account_of(trello) as account:  # another process, which is below the limit
        context = replace(bench.context, trello=account)
        assert await Poller(context, 15.0).poll_once() == 0
    assert is_expiry(bench, card, await bench.rt.questions.get(question.job, 1))
    assert due(bench, card) == EARLIER


@pytest.mark.parametrize("hours", [-1.0, 0.5, None])
async def test_an_earlier_or_removed_due_date_never_shortens(
    bench: TrelloBotHarness, trello: FakeTrello, hours: float | None
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    moved = None if hours is None else datetime.now(UTC).replace(microsecond=0)
    moved = moved and moved + timedelta(hours=hours or 0)
    trello.set_due(card, moved, olga(bench))
    await bench.poll()
    assert (await bench.rt.questions.get(question.job, 1)).expires_at == question.expires_at
    (notice,) = await bench.notices(card)
    assert "a due date extends the expiry of a question, and never shortens it" in notice
    await answer(bench, question)
    assert due(bench, card) == moved, "a person changed it meanwhile"


async def test_only_people_with_the_right_extend(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    trello.set_due(card, EARLIER, bench.mallory)
    await bench.poll()
    assert (await bench.rt.questions.get(question.job, 1)).expires_at == question.expires_at
    (notice,) = await bench.notices(card)
    assert "may not extend" in notice


async def test_two_processes_extend_to_a_date_once(
    bench: TrelloBotHarness, trello: FakeTrello, conn: Connection
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    trello.set_due(card, EARLIER, olga(bench))
    async with hold_commits(bench.rt) as first:
        extended = first.rt.questions.extend(question.job, 1, EARLIER, bench.people.olga)
        async with first.doing(extended):
            await first.then(bench.poll(), conn)
    current = await bench.rt.questions.get(question.job, 1)
    assert is_expiry(bench, card, current)
    assert due(bench, card) == EARLIER
    assert len(await bench.job_events(question, "question_extended")) == 1


async def test_two_processes_show_the_expiry_once(
    bench: TrelloBotHarness, trello: FakeTrello, conn: Connection
) -> None:
    card = bench.card()
    trello.set_due(card, EARLIER)
    work = await bench.make.asked(SOON, notify=(f"trello:{card}",))
    board = await bench.watch(due_dates=True)
    cards = boards_of(bench.rt).cards
    async with hold_commits(bench.rt) as first:
        other = boards_of(first.rt).cards
        (item,) = await cards.expiring(card)
        assert item.job == work.number
        row = CardDueDate(card, board.board_id, EARLIER, item.due, EARLIER)
        async with first.doing(other.change_due_date(None, row)):
            await first.then(show_expiry(bench.context.trello, cards, board, card), conn)
    shown = await cards.due_date(card)
    assert shown is not None
    assert shown.earlier == EARLIER, "not the date of the other process"
    assert shown.shown == due(bench, card)


async def test_an_extension_elsewhere_moves_the_due_date(bench: TrelloBotHarness) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    await bench.rt.questions.extend(question.job, 1, HOUR, bench.people.olga)
    await bench.poll()
    assert is_expiry(bench, card, await bench.rt.questions.get(question.job, 1))
    calls = len(bench.trello.calls)
    await bench.poll()
    assert all(call.method == "GET" for call in bench.trello.calls[calls:])


async def test_an_old_move_of_the_due_date_is_not_applied_again(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    trello.set_due(card, EARLIER + timedelta(days=9), olga(bench))
    trello.set_due(card, EARLIER, olga(bench))
    await bench.poll()
    assert due(bench, card) == EARLIER
    assert is_expiry(bench, card, await bench.rt.questions.get(question.job, 1))


@pytest.mark.parametrize("fault", [Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.HTML_503])
async def test_a_lost_reply_keeps_the_earlier_date(
    bench: TrelloBotHarness, trello: FakeTrello, fault: Fault
) -> None:
    card = bench.card()
    trello.set_due(card, EARLIER)
    trello.faults.next("PUT", DUE, fault)
    question = await bench.ask_question(card, SOON)
    assert is_expiry(bench, card, question)
    trello.faults.next("PUT", DUE, fault)
    await answer(bench, question)
    assert due(bench, card) == EARLIER


async def test_a_bot_killed_after_it_wrote_the_date_puts_the_earlier_back(
    bench: TrelloBotHarness, trello: FakeTrello, conn: Connection
) -> None:
    card = bench.card()
    trello.set_due(card, EARLIER)
    work = await bench.make.asked(SOON, notify=(f"trello:{card}",))
    question = await bench.rt.questions.get(work.number, 1)
    board = await bench.watch(due_dates=True)
    cards = boards_of(bench.rt).cards
    row = "SELECT FROM draftsman.trello_due_dates FOR UPDATE"
    trello.faults.next("PUT", DUE, Fault.DROP_BEFORE)
    with pytest.raises(Exception, match="no reply"):
        await show_expiry(bench.context.trello, cards, board, card)
    async with bench.rt.db.connection() as holder, holder.transaction():
        await holder.execute(row)
        writing = asyncio.create_task(show_expiry(bench.context.trello, cards, board, card))
        await wait_blocked(conn, by=holder.info.backend_pid)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    assert is_expiry(bench, card, question), "written, and not recorded as written"
    await answer(bench, question)
    await bench.poll()
    assert due(bench, card) == EARLIER


async def test_an_expired_question_puts_the_date_back(
    bench: TrelloBotHarness, clock: Clock
) -> None:
    card = bench.card()
    await bench.ask_question(card, SOON)
    await clock.forward(2 * HOUR)
    await bench.rt.sweeps.run("expire", LeaderTerm())
    await bench.send_messages()
    assert due(bench, card) is None


async def test_the_last_date_of_all_stops_no_poll(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    question = await bench.ask_question(card, SOON)
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    for member, reason in ((bench.mallory, "may not extend"), (olga(bench), "at most 366 days")):
        trello.set_due(card, last, member)
        await bench.poll()
        assert reason in (await bench.notices(card))[-1]
        trello.set_due(card, None, bench.mallory)
        await bench.poll()
    assert (await bench.rt.questions.get(question.job, 1)).expires_at == question.expires_at
