"""The outbox of messages: its rows and claims, and dispatchers that send them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from draftsman.channels import ChannelName
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import ClaimedDelivery, Delivery, DeliveryStatus, Receipt
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import parse
from draftsman.processes.components import Component
from draftsman.runtime import Runtime
from draftsman.settings.notifications import NotificationSettings
from draftsman_testing.waits import until

ComponentT = TypeVar("ComponentT", bound=Component)
LOG: Final[dict[str, Any]] = {"notify": ("log",)}
RECEIPT: Final = Receipt("ref")
LIVE: Final = frozenset(
    {DeliveryStatus.PENDING, DeliveryStatus.SENDING, DeliveryStatus.UNCONFIRMED}
)
FAST: Final = NotificationSettings(
    base_delay=0.01, max_delay=0.02, timeout=2, lease=30, poll=0.05, max_attempts=4
)
"""Settings that retry at once."""


async def deliveries_of(rt: Runtime, job: int) -> list[Delivery]:
    """Return the deliveries of a job in their order."""
    return (await rt.outbox.all(job, limit=1000))[::-1]


async def kinds_and_statuses(rt: Runtime, job: int) -> list[tuple[str, str]]:
    """Return kind and status of each delivery of a job."""
    return [(str(delivery.kind), str(delivery.status)) for delivery in await deliveries_of(rt, job)]


async def claim(rt: Runtime, channel: ChannelName = "log", **more: Any) -> list[ClaimedDelivery]:
    """Claim due deliveries."""
    return await rt.delivery_sender.claim(channel, **{"free": 1000, "share": 1000} | more)


async def send_all(rt: Runtime, channel: ChannelName = "log") -> list[ClaimedDelivery]:
    """Claim deliveries and record them as sent until none is due; return them in order."""
    sent: list[ClaimedDelivery] = []
    while claimed := await claim(rt, channel):
        for item in claimed:
            done = await rt.delivery_sender.record(item, Receipt(f"ref-{item.seq}"))
            assert done is DeliveryStatus.SENT
        sent += claimed
    return sent


@asynccontextmanager
async def running(component: ComponentT) -> AsyncIterator[ComponentT]:
    """Run a dispatcher, a bot or another component during the block."""
    task = asyncio.create_task(component.run())
    try:
        yield component
    finally:
        component.stop.set()
        await task


@asynccontextmanager
async def run_dispatcher(rt: Runtime, *channels: Channel) -> AsyncIterator[DeliveryDispatcher]:
    """Run a dispatcher of these channels, which retries at once."""
    deliver = DeliverySender(db=rt.db, policy=rt.policy, settings=FAST, fallback=parse("log"))
    async with running(DeliveryDispatcher(deliver, channels, FAST)) as dispatcher:
        yield dispatcher


async def wait_until_delivered(rt: Runtime, job: int, *channels: Channel) -> list[Delivery]:
    """Wait until no delivery of a job to these channels is left; return all of them."""
    names = {channel.name for channel in channels}

    async def sent() -> list[Delivery]:
        return [delivery for delivery in await deliveries_of(rt, job) if delivery.channel in names]

    async def look() -> bool:
        return not any(item.status in LIVE for item in await sent())

    await until(look, f"the deliveries of D-{job}")
    return await sent()
