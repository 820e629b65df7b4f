"""Claims of deliveries by the processes that send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.channels import ChannelName
from draftsman.database.database import Connection, execute, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.deliveries.delivery import ClaimedDelivery, UnservedTarget

HEAD_START: Final = 30.0
"""Seconds by which an urgent delivery precedes earlier deliveries of its target."""
RESCUE_LIMIT: Final = 200
"""Deliveries rescued by one statement."""
_Q = load(__name__)


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
    served: Sequence[str] | None = None,
) -> list[ClaimedDelivery]:
    """Claim due deliveries, at most `share` for each target after `after`.

    Only those to targets `served`, as `Channel.served` returns them. Of `reserved` targets, only
    urgent deliveries are claimed. `sender` is the number of this process's session lock, None where
    it holds none.
    """
    params = {
        "channel": channel,
        "free": free,
        "share": share,
        "busy": list(busy),
        "reserved": list(reserved),
        "after": after,
        "lease": lease,
        "sender": sender,
        "served": None if served is None else list(served),
        "head_start": HEAD_START,
    }
    return await fetch_all(conn, _Q["claim"], params, ClaimedDelivery)


async def unserved(conn: Connection, lease: float, late: float) -> list[UnservedTarget]:
    """Return the targets with due deliveries that no process sends.

    Of any target, a delivery that is due for more than `late` seconds counts as such.
    """
    return await fetch_all(conn, _Q["unserved"], {"lease": lease, "late": late}, UnservedTarget)


async def rescue(conn: Connection, channels: Sequence[ChannelName]) -> int:
    """Make the claims of processes without a session due again; return their number."""
    params = {"channels": [str(channel) for channel in channels], "limit": RESCUE_LIMIT}
    return await execute(conn, _Q["rescue"], params)


async def begin_call(conn: Connection, item: ClaimedDelivery, seconds: float) -> bool:
    """Record that a call lasts `seconds`; False where the lease is over or replaced."""
    params = {"seq": item.seq, "token": item.lease_token, "seconds": seconds}
    return await execute(conn, _Q["begin_call"], params) > 0


async def next_due(
    conn: Connection, channel: ChannelName, served: Sequence[str] | None = None
) -> float | None:
    """Return the seconds until a delivery to a target `served` is due; None without any."""
    params = {"channel": channel, "served": None if served is None else list(served)}
    seconds = await scalar(conn, _Q["next_due"], params)
    return None if seconds is None else float(seconds)
