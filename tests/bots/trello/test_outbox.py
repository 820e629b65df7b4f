"""Comments on a card, delivered from the outbox by a dispatcher to a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from draftsman.deliveries.delivery import Delivery, DeliveryKind, DeliveryStatus
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import Target, parse
from draftsman.jobs.runs.outcome import Done
from draftsman.people.store import people as store
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.deliveries.markdown import MAX_COMMENT
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import FAST, deliveries_of, running
from draftsman_testing.people import People
from draftsman_testing.trello import FakeTrello, Fault
from draftsman_testing.waits import until
from tests.bots.trello.channel_fixtures import CardHarness, StaticBoards, trello_channel
from tests.support.statements import rows

LIVE = {"pending", "sending", "unconfirmed"}
PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
COMMENTS = "/cards/{id}/actions/comments"
FILES = "/cards/{id}/attachments"
MOVE = "/cards/{id}/idList"
GATE = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol",))


class Flow(CardHarness):
    """A card, and a dispatcher that runs."""

    channel: TrelloChannel

    def __init__(self, rt: Runtime, trello: FakeTrello) -> None:
        super().__init__(trello)
        self.rt = rt
        self.boards = StaticBoards()

    @property
    def notify(self) -> tuple[str]:
        return (f"trello:{self.card}",)

    def dispatcher(self, fallback: Target | None = None) -> DeliveryDispatcher:
        deliver = DeliverySender(
            db=self.rt.db, policy=self.rt.policy, settings=FAST, fallback=fallback
        )
        return DeliveryDispatcher(deliver, [self.channel], FAST)

    async def quiet(self, job: int) -> list[Delivery]:
        """Wait until all messages are delivered; return the deliveries to Trello."""

        async def look() -> bool:
            return not any(delivery.status in LIVE for delivery in await self.sent(job))

        await until(look, f"the deliveries of D-{job}")
        return await self.sent(job)

    async def sent(self, job: int) -> list[Delivery]:
        """Return the deliveries to Trello so far."""
        return [
            delivery
            for delivery in await deliveries_of(self.rt, job)
            if delivery.channel == "trello"
        ]

    def counted(self, method: str, path: str) -> int:
        """Return how often a route was called."""
        return sum((call.method, call.path) == (method, path) for call in self.trello.calls)


@pytest.fixture
async def flow(rt: Runtime) -> AsyncIterator[Flow]:
    async with AsyncExitStack() as stack:
        flow = Flow(rt, await stack.enter_async_context(FakeTrello()))
        flow.channel = await stack.enter_async_context(trello_channel(flow.trello, flow.boards))
        await stack.enter_async_context(running(flow.dispatcher(parse("log"))))
        yield flow


async def test_status_comment_is_edited_and_other_messages_follow(
    flow: Flow, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(QUESTION, notify=flow.notify)
    await flow.quiet(work.number)
    status, asked = flow.comments
    assert "waiting for input" in status
    assert "To answer, comment the number" in asked
    await make.answer(work.number, "red", people.ben)
    again = await make.running(work.number)
    await rt.changes.store(again.lease, PATCH)
    await rt.checkpoints.artifact(again.lease, "evidence.json", "evidence", b"{}")
    await rt.settlement.outcome(again, Done({"summary": "done *well*"}))
    await flow.quiet(work.number)
    status, closed, result = flow.comments
    assert "completed" in status
    assert "was answered by ben: red" in closed
    assert "To answer, comment" not in closed
    assert r"done \*well\*" in result
    (patch,) = flow.trello.attachments(flow.card)
    assert patch.name.startswith("changes.patch · ")
    assert patch.data == PATCH
    refs = {delivery.external_ref for delivery in await flow.sent(work.number)}
    assert {comment.id for comment in flow.trello.comments(flow.card)} < refs


async def test_deleted_card_ends_its_deliveries_but_not_the_job(
    flow: Flow, make: Factory, people: People
) -> None:
    async with flow.rt.db.connection() as conn:
        await store.create_link_code(conn, "trello", flow.anna, "Erin", "hash", 60)
        assert await store.link(conn, "hash", "erin", "cli:erin")
    job = await make.queued(notify=flow.notify, actor=people.erin)
    await flow.quiet(job)
    flow.trello.delete_card(flow.card)
    await flow.rt.settlement.outcome(await make.running(job), Done({}))
    last = (await flow.quiet(job))[-1]
    assert (last.kind, last.status, last.attempts) == (DeliveryKind.RESULT, "dead_letter", 1)
    assert "not found" in (last.last_error or "")
    instead = [
        delivery for delivery in await deliveries_of(flow.rt, job) if delivery.channel != "trello"
    ]
    assert {delivery.target for delivery in instead} == {"log"}, "a person is not a card"
    assert (await flow.rt.read_model.job(job)).status == "completed"


async def test_long_notice_is_truncated_and_attached(flow: Flow, make: Factory) -> None:
    job = await make.queued(notify=flow.notify)
    await flow.rt.outbox.notice(job, "n", "*" * 40_000)
    await flow.quiet(job)
    notice = flow.comments[1]
    assert "The full text is attached to the card" in notice
    assert len(notice) <= MAX_COMMENT
    (file,) = flow.trello.attachments(flow.card)
    assert file.data == b"*" * 40_000


async def test_invalid_token_pauses_deliveries_but_not_the_job(flow: Flow, make: Factory) -> None:
    flow.trello.revoke()
    job = await make.queued(notify=flow.notify)

    async def paused() -> bool:
        return any(delivery.last_error for delivery in await deliveries_of(flow.rt, job))

    await until(paused, "the refusal")
    await flow.rt.settlement.outcome(await make.running(job), Done({}))
    await flow.rt.outbox.notice(job, "n", "one more")
    status, *_ = await deliveries_of(flow.rt, job)
    assert (status.status, status.attempts) == ("pending", 0)
    assert "invalid token" in (status.last_error or "")
    assert "invalid token" in (flow.channel.trouble or "")
    assert len(flow.trello.calls) == 1, "a hot retry"


async def test_rate_limit_pauses_the_account(flow: Flow, make: Factory, rt: Runtime) -> None:
    flow.trello.faults.next("POST", COMMENTS, Fault.RATE_LIMIT)
    job = await make.queued(notify=flow.notify)

    async def shut() -> bool:
        return any(delivery.last_error for delivery in await deliveries_of(flow.rt, job))

    await until(shut, "the refusal")
    (status,) = await deliveries_of(rt, job)
    assert (status.status, status.attempts) == ("pending", 0)
    async with rt.db.connection() as conn:
        found = await rows(conn, "SELECT bucket FROM draftsman.channel_limits")
    assert found == [("trello",)]
    assert len(flow.trello.calls) == 1


@pytest.mark.parametrize(
    "fault", [Fault.DROP_AFTER, Fault.HTML_AFTER, Fault.HTML_200, Fault.CUT_AFTER, Fault.HTML_503]
)
async def test_comment_without_a_response_is_reconciled(
    flow: Flow, make: Factory, fault: Fault
) -> None:
    flow.trello.faults.next("POST", COMMENTS, fault)
    job = await make.queued(notify=flow.notify)
    (status,) = await flow.quiet(job)
    assert status.status is DeliveryStatus.SENT
    assert len(flow.comments) == 1
    assert status.external_ref == flow.trello.comments(flow.card)[0].id


async def test_only_addressed_people_are_mentioned_once(
    rt: Runtime, make: Factory, flow: Flow
) -> None:
    work = await make.asked(GATE, notify=flow.notify, title="ask @ben and @card")
    await flow.quiet(work.number)
    assert "For carol" in flow.comments[1], "she is not on the board"
    assert "@ben" not in "".join(flow.comments)
    assert "@card" not in "".join(flow.comments)
