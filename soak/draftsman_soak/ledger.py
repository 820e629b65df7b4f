"""Ledger of acknowledged calls and injected faults, to compare with the final state.

A call is recorded when it returns. A call that failed because the database was unreachable is
repeated until it is acknowledged.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from draftsman.errors import DraftsmanError, LostRace

T = TypeVar("T")
RETRY_DELAY: Final = 0.2
"""Seconds before a call is repeated."""
RETRY_TIMEOUT: Final = 120.0
"""Seconds after which an unreachable database is an error."""


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """An answer or vote and its result; `value` is the answer, `approve` or `deny`."""

    job: int
    question: int
    event: str
    voter: str
    value: str
    accepted: bool
    resolved: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at `at` (Unix time) of a worker (its id), of a job's run, or of the whole system.

    `interrupts` is set if the fault can interrupt a run.
    """

    kind: str
    at: float
    worker: str | None = None
    job: int | None = None
    interrupts: bool = True


@dataclass(slots=True)
class Ledger:
    """Acknowledged calls and faults of a seed."""

    requests: dict[str, set[int]] = field(default_factory=dict)
    """Acknowledged job numbers by idempotency key."""
    jobs: dict[int, str] = field(default_factory=dict)
    """Job type by number of every acknowledged job, retries included."""
    submitted_answers: list[SubmittedAnswer] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    """Seconds for which a client's transaction was open and no worker made progress."""
    cancels: set[int] = field(default_factory=set)
    """Jobs whose cancel was acknowledged."""
    cancel_tries: set[int] = field(default_factory=set)
    retries: dict[int, set[int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)
    """Faults without a target, by kind."""
    restarts: int = 0
    exits: Counter[int] = field(default_factory=Counter)
    """Exit codes of unexpected worker exits."""
    unsupported: set[str] = field(default_factory=set)
    """Faults that this machine does not support, with the reason."""
    unexpected_errors: list[str] = field(default_factory=list)
    """Errors that no service should raise."""


async def retry_until_reachable(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the database responds and writes, as a client with a key does.

    Raises the last error after RETRY_TIMEOUT, which is longer than any fault.
    """
    end = time.monotonic() + RETRY_TIMEOUT
    while True:
        try:
            return await call()
        except DraftsmanError as error:
            if not (error.is_temporary or isinstance(error, LostRace)) or time.monotonic() > end:
                raise
            await asyncio.sleep(RETRY_DELAY)
