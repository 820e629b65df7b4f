"""Queries and claims of the outbox for tests."""

from __future__ import annotations

from typing import Any, Final

from draftsman.channels import ChannelName
from draftsman.deliveries.delivery import ClaimedDelivery, Delivery, DeliveryStatus, Receipt
from draftsman.runtime import Runtime

LOG: Final[dict[str, Any]] = {"notify": ("log",)}
RECEIPT: Final = Receipt("ref")


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
