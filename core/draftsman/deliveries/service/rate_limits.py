"""Rate limits of channels, which all processes share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from draftsman.database.database import Database
from draftsman.deliveries.delivery import RateLimit
from draftsman.deliveries.store import rate_limits as store
from draftsman.log import redact

URGENT_RESERVE: Final = 1
"""Tokens of each bucket with a burst that are reserved for urgent deliveries."""


class RateLimits:
    """Takes tokens from buckets, and pauses buckets."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._buckets: set[str] = set()

    async def consume(self, limits: Sequence[RateLimit], *, urgent: bool = True) -> float | None:
        """Take a token of each limit; else return the seconds until a retry.

        What is not urgent leaves the reserve.
        """
        if not limits:
            return None
        if not urgent:
            limits = [
                replace(limit, burst=max(1, limit.burst - URGENT_RESERVE)) for limit in limits
            ]
        async with self._db.connection() as conn:
            if new := [limit for limit in limits if limit.bucket not in self._buckets]:
                await store.make_buckets(conn, new)
                self._buckets |= {limit.bucket for limit in new}
            return await store.consume_tokens(conn, limits)

    async def pause(self, bucket: str, seconds: float, reason: str) -> None:
        """Pause a bucket, or a whole channel, in all processes for so many seconds."""
        async with self._db.connection() as conn:
            await store.pause(conn, bucket, seconds, redact(reason)[:500])
