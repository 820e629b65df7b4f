"""Rate limits of channels: buckets of tokens, and pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.channels import ChannelName
from draftsman.database.database import Connection, execute, rows, scalar
from draftsman.database.named_queries import load
from draftsman.deliveries.delivery import RateLimit

_Q = load(__name__)

MAX_PAUSED: Final = 100
"""Maximum number of paused buckets that are listed."""


async def make_buckets(conn: Connection, limits: Sequence[RateLimit]) -> None:
    """Insert the rows of these buckets where they are missing."""
    await execute(conn, _Q["make_buckets"], {"buckets": [limit.bucket for limit in limits]})


async def consume_tokens(conn: Connection, limits: Sequence[RateLimit]) -> float | None:
    """Take a token from each of these buckets; else return the seconds until a retry."""
    params = {
        "buckets": [limit.bucket for limit in limits],
        "every": [limit.every for limit in limits],
        "bursts": [limit.burst for limit in limits],
    }
    wait = await scalar(conn, _Q["consume_tokens"], params)
    return None if wait is None else float(wait)


async def pause(conn: Connection, bucket: str, seconds: float, reason: str) -> None:
    """Pause a bucket for all processes for so many seconds."""
    params = {"bucket": bucket, "seconds": seconds, "reason": reason}
    await execute(conn, _Q["pause"], params)


async def paused(conn: Connection, least: float) -> list[tuple[str, float, str]]:
    """Return bucket, seconds left and reason of pauses of more than `least` seconds."""
    params = {"least": least, "limit": MAX_PAUSED}
    return [(row[0], row[1], row[2]) for row in await rows(conn, _Q["paused"], params)]


async def resume(conn: Connection, channel: ChannelName) -> None:
    """End the pause of a channel, and make its paused deliveries due."""
    await execute(conn, _Q["resume"], {"channel": channel, "bucket": str(channel)})
