"""A sweep: a periodic change by the leader, declared by the service that makes it.

Each statement of a sweep proves the leader's lease (a NULL term: run by hand), is bounded, and is
safe when two leaders run it. The rows of a batch are locked as they are read, and those that
another transaction has locked are left out: it may stay open, and other rows must not wait for it.
Where the database refuses a batch, its candidates are read, and changed in parts (`only`), and
those that are refused alone are left out for a while (`without`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from operator import itemgetter
from typing import Final, LiteralString, Protocol

from draftsman.database.database import Connection
from draftsman.database.isolation import Isolation
from draftsman.database.selection import Selection
from draftsman.jobs.runs.run import LeaderTerm

SWEEP_TIME: Final = 5.0
"""Seconds after which a sweep with more to do lets the next one run."""


class DueTurn(IntEnum):
    """The turn of a sweep among those that run as soon as something is due.

    A sweep with much to do delays those after it by SWEEP_TIME. So jobs that are ready come first,
    and what people may wait hours for comes after all that makes jobs ready.
    """

    READY_JOBS = auto()
    POSTPONED_WORK = auto()
    PLACES = auto()
    NEW_JOBS = auto()
    QUESTIONS = auto()
    OTHERS = auto()


@dataclass(frozen=True, slots=True)
class DueTime:
    """When a sweep has something to do, and its turn among those that run then."""

    turn: DueTurn
    query: LiteralString
    """Query of the earliest time; NULL when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A periodic change by the leader; `draftsman sweep NAME` makes it by hand."""

    name: str
    description: str
    """What it does, for its line in the help and in `docs/operations.md`."""
    run: Callable[[LeaderTerm], Awaitable[int]]
    """Makes the change, and returns the number of changed rows."""
    isolations: Sequence[Isolation] = ()
    """The rows that it sets aside, as the database refuses them."""
    due: DueTime | None = None
    """When it has something to do; None: it runs at intervals only."""
    follows_deaths: bool = False
    """Whether it also runs as soon as a worker on the leader's host has died."""
    applies_settings: bool = False
    """Whether it writes what the leader's configuration says."""
    min_interval: float = 0.0
    """Minimum seconds between two runs of a sweep that takes long."""
    max_interval: float = math.inf
    """Maximum seconds between two runs of a sweep for whose work no time is stored."""

    def interval(self, configured: float) -> float:
        """Return the seconds between two runs; `configured` is that of the configuration."""
        return min(max(configured, self.min_interval), self.max_interval)

    @property
    def runs_at_start(self) -> bool:
        """Whether a new leader runs it at once: the last may have died, or had other settings."""
        return self.follows_deaths or self.applies_settings


def in_due_order(sweeps: Iterable[Sweep]) -> list[Sweep]:
    """Return the sweeps that run as soon as something is due, in their order."""
    turns = [(sweep.due.turn, sweep) for sweep in sweeps if sweep.due is not None]
    return [sweep for _, sweep in sorted(turns, key=itemgetter(0))]


class SweepingService(Protocol):
    """A service that declares sweeps."""

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweeps of the service, in their order."""
        ...


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


async def run_isolated(
    isolation: Isolation,
    statement: Callable[[Connection, LeaderTerm, int, Selection], Awaitable[int]],
    candidates: Callable[[Connection, LeaderTerm, int, Selection], Awaitable[Sequence[int]]],
    *,
    term: LeaderTerm,
    limit: int,
) -> int:
    """Run a statement that changes at most `limit` of its candidates; return their number."""
    return await isolation.run(
        lambda conn, selection: statement(conn, term, limit, selection),
        lambda conn, selection: candidates(conn, term, limit, selection),
    )
