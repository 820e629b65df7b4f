"""Deliveries in the hands of the processes that send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.domain.messages.delivery import ChannelName, ClaimedDelivery
from draftsman.store.postgres.database import Connection, execute, fetch_all, scalar
from draftsman.store.queries import load

HEAD_START: Final = 30.0
"""Seconds that an urgent delivery goes before others of its target that were due earlier."""
RECLAIMED: Final = 200
"""Deliveries that one statement takes from processes that ended."""
_Q = load("delivery_claims")


async def claim(
    conn: Connection,
    channel: ChannelName,
    *,
    free: int,
    share: int,
    busy: Sequence[str],
    reserved: Sequence[str] = (),
    after: str,
    lease: float,
    sender: int | None = None,
) -> list[ClaimedDelivery]:
    """Take what is due, at most `share` of each target that comes after `after`.

    Targets that are `reserved` give their urgent deliveries alone. `sender` is the number of the
    session lock of this process, None where it holds none.
    """
    params = {"channel": channel, "free": free, "share": share, "busy": list(busy)}
    params |= {"reserved": list(reserved), "after": after, "lease": lease, "sender": sender}
    return await fetch_all(conn, _Q["claim"], params | {"head_start": HEAD_START}, ClaimedDelivery)


async def reclaim(conn: Connection, channels: Sequence[ChannelName]) -> int:
    """Make due what processes without a session have in their hands; return how many."""
    params = {"channels": [str(channel) for channel in channels], "limit": RECLAIMED}
    return await execute(conn, _Q["reclaim"], params)


async def begin_call(conn: Connection, item: ClaimedDelivery, seconds: float) -> bool:
    """Note that a call lasts for so many seconds; False where the lease is over or another's."""
    params = {"seq": item.seq, "token": item.lease_token, "seconds": seconds}
    return await execute(conn, _Q["begin_call"], params) > 0


async def next_due(conn: Connection, channel: ChannelName) -> float | None:
    """Return the seconds until something is due."""
    found = await scalar(conn, _Q["next_due"], {"channel": channel})
    return None if found is None else float(found)
