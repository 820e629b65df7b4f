"""Sweeps that change so many rows at a time, repeated for a limited time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.jobs.runs.run import LeaderTerm

SWEEP_TIME: Final = 5.0
"""Seconds after which a sweep with more to do lets the next one run."""


async def repeat(
    sweep: Callable[[LeaderTerm], Awaitable[int]], limit: int, term: LeaderTerm
) -> int:
    """Repeat a sweep that changes at most `limit` rows until a pass is not full, or for SWEEP_TIME.

    Return the number of changed rows.
    """
    end = time.monotonic() + SWEEP_TIME
    changed = await sweep(term)
    total = changed
    while changed >= limit and time.monotonic() < end:
        changed = await sweep(term)
        total += changed
    return total
