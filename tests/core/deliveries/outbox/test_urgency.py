"""Questions, decisions and results precede statuses, which are still sent."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import ClaimedDelivery, Deferred, DeliveryStatus
from draftsman.deliveries.store.delivery_claims import HEAD_START
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import RECEIPT, deliveries_of
from draftsman_testing.outbox import claim as claim_of
from tests.core.deliveries.outbox.chat_harness import CHAT, ChatHarness
from tests.support.chat import ChatChannel
from tests.support.clock import Clock
from tests.support.statements import rows

ROUND: Final[dict[str, Any]] = {"free": 4, "share": 1}


async def claim(rt: Runtime, **more: Any) -> list[ClaimedDelivery]:
    return await claim_of(rt, "slack", **ROUND | more)


async def finish(rt: Runtime, item: ClaimedDelivery) -> None:
    assert await rt.delivery_sender.record(item, RECEIPT) is DeliveryStatus.SENT


async def test_the_thread_of_a_question_goes_before_statuses_that_were_due_earlier(
    make: Factory, rt: Runtime
) -> None:
    cards = [await make.queued(**CHAT) for _ in range(3)]
    number = (await make.asked(**CHAT)).number
    elsewhere = await make.queued(notify=("slack:C2",))
    claimed = await claim(rt)
    assert [(item.job, item.kind) for item in claimed] == [
        (number, "status"),
        (elsewhere, "status"),
    ]
    await finish(rt, claimed[0])
    (question,) = await claim(rt)
    assert (question.job, question.kind, question.urgent) == (number, "question", True)
    assert {item.job for item in await claim(rt, share=9)} == set(cards)


@pytest.mark.parametrize("kind", ["question_closed", "result"])
async def test_decisions_and_results_are_urgent(make: Factory, rt: Runtime, kind: str) -> None:
    number = (await make.asked(**CHAT)).number
    while claimed := await claim(rt):
        await finish(rt, claimed[0])
    await make.queued(**CHAT)
    await make.answer(number, "red")
    if kind == "result":
        await rt.job_control.cancel(number, make.owner)
    kinds = []
    while kind not in kinds:
        (item,) = await claim(rt)
        assert item.job == number
        kinds.append(item.kind)
        await finish(rt, item)


async def test_only_deliveries_before_an_urgent_delivery_are_urgent(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    number = (await make.asked(**CHAT)).number
    await rt.outbox.notice(number, "n", "hello")
    await make.queued(**CHAT)
    deliveries = await rows(
        conn, "SELECT job, kind::text, urgent FROM draftsman.deliveries ORDER BY seq"
    )
    assert deliveries == [
        (number, "status", True), (number, "question", True), (number, "notice", False),
        (number + 1, "status", False),
    ]  # fmt: skip


async def test_a_status_due_earlier_by_the_head_start_goes_first(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """With any number of questions: each of them is due later than the status."""
    card = await make.queued(**CHAT)
    await clock.forward(HEAD_START - 1)
    soon = (await make.asked(**CHAT)).number
    await clock.forward(2)
    await make.asked(**CHAT)
    (first,) = await claim(rt)
    assert first.job == soon
    (second,) = await claim(rt)
    assert second.job == card
    assert second.urgent, "its call may take from the reserve"


async def test_a_reserved_target_gives_only_urgent_deliveries(make: Factory, rt: Runtime) -> None:
    await make.queued(**CHAT)
    assert await claim(rt, reserved=["C1"]) == []
    number = (await make.asked(**CHAT)).number
    assert [item.job for item in await claim(rt, reserved=["C1"], share=9)] == [number]


async def test_the_last_call_of_a_bucket_is_reserved_for_an_urgent_delivery(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    """Two calls at once, then a call a minute."""
    channel = ChatChannel(chat.url, rate=1 / 60)
    for _ in range(2):
        await make.queued(**CHAT)
    first, second = await claim(rt, share=2)
    number = (await make.asked(**CHAT)).number
    (urgent,) = await claim(rt)
    try:
        assert not isinstance(await rt.delivery_sender.send(first, channel), Deferred)
        assert isinstance(await rt.delivery_sender.send(second, channel), Deferred)
        assert urgent.job == number
        assert not isinstance(await rt.delivery_sender.send(urgent, channel), Deferred)
    finally:
        await channel.close()


@pytest.mark.parametrize("how", ["our limit", "a refusal"])
async def test_a_rate_limited_delivery_keeps_its_place(
    make: Factory, rt: Runtime, how: str
) -> None:
    outcome = Deferred(5) if how == "our limit" else Failure("HTTP 429", retry_after=5)
    await make.queued(**CHAT)
    second = await make.queued(**CHAT)
    (item,) = await claim(rt)
    assert await rt.delivery_sender.record(item, outcome) is DeliveryStatus.PENDING
    (delivery,) = await deliveries_of(rt, item.job)
    assert delivery.next_attempt_at == item.due_at
    (next_claim,) = await claim(rt)
    assert next_claim.job == item.job != second
