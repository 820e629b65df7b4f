"""Deliveries against concurrent changes of their job, and against each other."""

from __future__ import annotations

import asyncio
from typing import Any

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import ClaimedDelivery, DeliveryKind, DeliveryStatus, Unconfirmed
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import (
    LOG,
    RECEIPT,
    claim,
    deliveries_of,
    kinds_and_statuses,
    send_all,
)
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import rows


async def _asking(make: Factory, rt: Runtime) -> tuple[int, ClaimedDelivery]:
    """Return a job that asks, and the post of its question, claimed by a dispatcher."""
    work = await make.asked(**LOG)
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    (question,) = await claim(rt)
    assert question.kind is DeliveryKind.QUESTION
    return work.number, question


def _answer(rt: Runtime, make: Factory, job: int) -> Any:
    return Factory(rt, make.owner).answer(job, "red")


async def test_a_post_recorded_after_its_question_closed_is_edited(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    job, question = await _asking(make, rt)
    async with first.doing(_answer(first.rt, make, job)):
        assert await first.then(rt.delivery_sender.record(question, RECEIPT), conn) == "sent"
    assert [str(delivery.kind) for delivery in await send_all(rt)] == ["question_closed", "status"]


async def test_a_post_that_failed_while_its_question_closed_is_not_retried(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    """It waits for the answer, and sees its effect, although its own snapshot is older."""
    job, question = await _asking(make, rt)
    refused = Failure("no", http_status=500)
    async with first.doing(_answer(first.rt, make, job)):
        outcome = await first.then(rt.delivery_sender.record(question, refused), conn)
    assert outcome is DeliveryStatus.SUPERSEDED


async def test_an_answer_waits_for_a_post_that_is_being_recorded(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    job, question = await _asking(make, rt)
    async with first.doing(first.rt.delivery_sender.record(question, RECEIPT)):
        assert (await first.then(_answer(rt, make, job), conn)).accepted
    settles = [
        delivery
        for delivery in await deliveries_of(rt, job)
        if delivery.kind is DeliveryKind.QUESTION_CLOSED
    ]
    assert [delivery.original for delivery in settles] == [question.seq]


async def test_an_answer_waits_for_a_claim_and_closes_the_claimed_question(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked(**LOG)
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    async with first.doing(claim(first.rt)) as claimed:
        assert (await first.then(_answer(rt, make, work.number), conn)).accepted
    (question,) = claimed.result()
    assert await kinds_and_statuses(rt, work.number) == [
        ("status", "sent"), ("question", "sending"),
        ("question_closed", "pending"), ("status", "pending"),
    ]  # fmt: skip
    assert (
        await rt.delivery_sender.record(question, Unconfirmed("cut")) is DeliveryStatus.UNCONFIRMED
    )


async def test_a_claim_skips_a_delivery_that_an_answer_supersedes(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    work = await make.asked(**LOG)
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    async with first.doing(_answer(first.rt, make, work.number)):
        async with asyncio.timeout(5):
            assert await claim(rt) == []
    assert [str(delivery.kind) for delivery in await send_all(rt)] == ["status"]


def _extend(rt: Runtime, make: Factory, job: int) -> Any:
    """Change what the messages of the question show."""
    return rt.questions.extend(job, 1, 86_400.0, make.owner)


async def test_messages_of_a_question_are_not_claimed_while_their_content_changes(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    """A message that is claimed before the commit would be built from the old data."""
    work = await make.asked(**LOG)
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    async with first.doing(_extend(first.rt, make, work.number)):
        async with asyncio.timeout(5):
            assert await claim(rt) == []
    (question,) = await claim(rt)
    assert question.kind is DeliveryKind.QUESTION
    await rt.delivery_sender.record(question, RECEIPT)
    await _extend(rt, make, work.number)
    async with first.doing(_extend(first.rt, make, work.number)):
        async with asyncio.timeout(5):
            assert await claim(rt) == []
    assert [str(delivery.kind) for delivery in await send_all(rt)] == ["question_closed"]


async def test_a_change_waits_for_the_claim_of_a_message_and_edits_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked(**LOG)
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    async with first.doing(claim(first.rt)) as claimed:
        await first.then(_extend(rt, make, work.number), conn)
    (question,) = claimed.result()
    await rt.delivery_sender.record(question, RECEIPT)
    async with first.doing(claim(first.rt)) as claimed:
        await first.then(_extend(rt, make, work.number), conn)
    (edit,) = claimed.result()
    assert edit.kind is DeliveryKind.QUESTION_CLOSED
    await rt.delivery_sender.record(edit, RECEIPT)
    assert [str(delivery.kind) for delivery in await send_all(rt)] == ["question_closed"]


async def test_the_previous_status_is_not_claimed_while_the_next_is_committed(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(**LOG)
    async with first.doing(first.rt.job_control.cancel(number, make.owner)):
        async with asyncio.timeout(5):
            assert await claim(rt) == []
    (status,) = await claim(rt)
    assert (status.kind, status.version) == (DeliveryKind.STATUS, 2)


async def test_a_status_change_waits_for_a_claim_and_adds_a_delivery(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(**LOG)
    async with first.doing(claim(first.rt)):
        await first.then(rt.job_control.cancel(number, make.owner), conn)
    deliveries = await rows(
        conn, "SELECT version, status::text FROM draftsman.deliveries WHERE kind = 'status'"
        " ORDER BY seq",
    )  # fmt: skip
    assert deliveries == [(1, "sending"), (2, "pending")]


async def test_two_dispatchers_claim_different_deliveries_without_waiting(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    for _ in range(6):
        await make.queued(**LOG)
    async with first.doing(claim(first.rt, share=4)) as claimed:
        async with asyncio.timeout(5):
            others = await claim(rt, share=4)
    seqs = [item.seq for item in (*claimed.result(), *others)]
    assert (len(claimed.result()), len(others), len(set(seqs))) == (4, 2, 6)


async def test_concurrent_dispatchers_claim_each_delivery_once_and_one_of_a_thread(
    make: Factory, rt: Runtime
) -> None:
    works = [await make.asked(**LOG) for _ in range(20)]
    claimed = [
        item
        for some in await asyncio.gather(*(claim(rt, share=5) for _ in range(12)))
        for item in some
    ]
    assert len({item.seq for item in claimed}) == len(claimed)
    assert len({item.thread_key for item in claimed}) == len(claimed) == len(works)


async def test_the_lease_of_a_dead_dispatcher_expires_and_its_post_is_in_doubt(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.queued(**LOG)
    (first_claim,) = await claim(rt)
    assert await claim(rt) == []
    await clock.forward(61, while_in_flight=True)
    (next_claim,) = await claim(rt)
    assert (next_claim.seq, next_claim.in_doubt, next_claim.attempts) == (first_claim.seq, True, 2)
    assert next_claim.id == first_claim.id, "the marker is that of the delivery"
    assert await rt.delivery_sender.record(first_claim, RECEIPT) is None, (
        "it was sent again after being dead"
    )
    assert await rt.delivery_sender.record(next_claim, RECEIPT) is DeliveryStatus.SENT


async def test_a_target_that_joins_during_a_status_change_gets_the_newest_status(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked(subject_key="card")
    async with first.doing(_answer(first.rt, make, work.number)):
        joined = await first.then(make.queued(subject_key="card", **LOG), conn)
    assert joined == work.number
    version = (await rt.read_model.job(joined)).version
    deliveries = await rows(conn, "SELECT kind::text, version FROM draftsman.deliveries")
    assert deliveries == [("status", version)]


async def test_two_concurrent_redeliveries_resend_once(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    await make.queued(**LOG)
    (item,) = await claim(rt)
    failure = Failure("gone", declared="PERMANENT")
    assert await rt.delivery_sender.record(item, failure) is DeliveryStatus.DEAD_LETTER
    redelivery = first.rt.outbox.redeliver([item.seq], make.owner)
    async with first.doing(redelivery) as revived:
        assert await first.then(rt.outbox.redeliver([item.seq], make.owner), conn) == []
    assert revived.result() == [item.seq]
    (once,) = await claim(rt, "log")
    assert once.in_doubt
