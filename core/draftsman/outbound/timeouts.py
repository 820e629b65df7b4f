"""Timeouts with a failure that names the limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from draftsman.errors import Failure
from draftsman.jobs.retries import RetryPolicy


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a call, in seconds."""

    call: float
    connect: float
    idle: float | None = None

    @property
    def silence(self) -> float:
        """Seconds without a byte of a stream that has no other limit."""
        return self.call if self.idle is None else self.idle

    @classmethod
    def of(cls, policy: RetryPolicy) -> Self:
        """Return the timeouts of a job's limits."""
        return cls(policy.call_timeout, policy.connect_timeout, policy.idle_timeout)


@asynccontextmanager
async def time_limit(
    name: str, seconds: float | None, what: str, *, origin: str = "handler"
) -> AsyncIterator[asyncio.Timeout]:
    """Cancel the block after `seconds` with a Failure that names the limit.

        async with time_limit("idle", 60, "no byte"): …   ->   no byte for 60 s (idle limit)

    The failure's code is `NAME_timeout`. A TimeoutError of the block is passed through.
    """
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            yield scope
    except TimeoutError:
        if not scope.expired():
            raise
        text = f"{what} for {seconds:g} s ({name} limit)"
        raise Failure(text, origin=origin, code=f"{name}_timeout") from None
