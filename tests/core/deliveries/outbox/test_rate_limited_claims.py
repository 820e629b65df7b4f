"""A rate-limited target does not keep the dispatcher busy, and delays no other target."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest

from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    DeliveryStatus,
    Message,
    RateLimit,
)
from draftsman.deliveries.dispatcher import LIMITED_WAIT, DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import FAST, deliveries_of, running
from draftsman_testing.waits import until
from tests.core.deliveries.outbox.chat_harness import CHAT, ChatHarness
from tests.support.chat import ChatChannel

PATIENT: Final = FAST.model_copy(update={"poll": 60.0})
"""Only notifications wake the dispatcher."""


class CountingSender(DeliverySender):
    """Counts claims."""

    claims = 0

    async def claim(self, *args: Any, **options: Any) -> list[ClaimedDelivery]:
        self.claims += 1
        return await super().claim(*args, **options)


class LimitedChannel(ChatChannel):
    """Accepts a message of each target, and then one a minute."""

    def limits(self, message: Message) -> Sequence[RateLimit]:
        return (RateLimit(f"slack#post:{message.target}", 60.0, 1),)


@pytest.fixture
async def sender(rt: Runtime) -> CountingSender:
    return CountingSender(db=rt.db, policy=rt.policy, settings=PATIENT, fallback=None)


@pytest.fixture
async def limited(
    make: Factory, rt: Runtime, chat: ChatHarness, sender: CountingSender
) -> AsyncIterator[DeliveryDispatcher]:
    """Run a dispatcher that has reached the limit of a target with due deliveries."""
    jobs = [await make.queued(**CHAT) for _ in range(3)]
    dispatcher = DeliveryDispatcher(sender, [LimitedChannel(chat.url)], PATIENT)

    async def look() -> bool:
        statuses = [(await deliveries_of(rt, job))[0].status for job in jobs]
        return sorted(statuses) == ["pending", "pending", "sent"]

    async with running(dispatcher):
        await until(look, "the limit of the target")
        yield dispatcher


async def test_notifications_of_a_limited_target_lead_to_few_claims(
    rt: Runtime, limited: DeliveryDispatcher, sender: CountingSender
) -> None:
    before = sender.claims
    start = time.monotonic()
    for _ in range(200):
        limited.wake("slack")
        await rt.db.run_transaction(lambda conn: conn.execute("SELECT 1"))
    most = (time.monotonic() - start) / LIMITED_WAIT + 2
    assert sender.claims - before <= most


async def test_message_to_another_target_is_sent_while_a_target_is_limited(
    make: Factory, rt: Runtime, limited: DeliveryDispatcher
) -> None:
    other = await make.queued(notify=("slack:C2",))
    limited.wake("slack")

    async def look() -> bool:
        return (await deliveries_of(rt, other))[0].status is DeliveryStatus.SENT

    await until(look, "the message to another target")
