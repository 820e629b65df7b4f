"""What draftsman acknowledged, and what was done to it: the other half of every comparison.

Written down when the call has returned, as somebody does who relies on the answer. What was not
acknowledged, because the database went away in the middle, is asked again until it is.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from draftsman.errors import DatabaseUnreachable, LostRace

T = TypeVar("T")
RETRY_DELAY: Final = 0.2
"""Seconds before the same thing is asked again."""
RETRY_TIMEOUT: Final = 120.0
"""Seconds after which a database that was not reached counts as gone."""


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """An answer or a vote, and what became of it; `said` is the value, approve or deny."""

    job: int
    question: int
    event: str
    voter: str
    value: str
    accepted: bool
    resolved: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Something done at `at` (Unix time) to one worker (its id), to the run of one job, or to all.

    `interrupts` tells whether it can interrupt a run at all.
    """

    kind: str
    at: float
    worker: str | None = None
    job: int | None = None
    interrupts: bool = True


@dataclass(slots=True)
class Ledger:
    """Everything of one seed."""

    requests: dict[str, set[int]] = field(default_factory=dict)
    """The numbers that were acknowledged for each key."""
    jobs: dict[int, str] = field(default_factory=dict)
    """Type by the number of every job that was acknowledged, retries included."""
    submitted_answers: list[SubmittedAnswer] = field(default_factory=list)
    cancels: set[int] = field(default_factory=set)
    """Jobs whose cancel was acknowledged."""
    cancel_tries: set[int] = field(default_factory=set)
    retries: dict[int, set[int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)
    """Faults that had nothing to hit, by kind."""
    restarts: int = 0
    exits: Counter[int] = field(default_factory=Counter)
    """Exit codes of workers that nobody had told to end."""
    unsupported: set[str] = field(default_factory=set)
    """What this machine cannot do, and why."""
    unexpected_errors: list[str] = field(default_factory=list)
    """Errors that no service should have raised."""


async def retry_until_reachable(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the database says something, as an honest client with a key of its own does.

    Raises the last error when that takes longer than any fault does.
    """
    end = time.monotonic() + RETRY_TIMEOUT
    while True:
        try:
            return await call()
        except (DatabaseUnreachable, LostRace):
            if time.monotonic() > end:
                raise
            await asyncio.sleep(RETRY_DELAY)
