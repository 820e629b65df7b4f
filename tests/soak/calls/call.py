"""A call of the store, the rows that it may touch, and jobs to call it with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from draftsman.domain.run import Lease
from draftsman.store.postgres.database import Connection
from tests.soak.history import ALL, FINISHED, groups

FEW = 300
"""Rows of one table that a call may read: pages and sweeps take 200, and look at some more."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is called, and what it may cost at most."""

    work: Callable[[Connection], Awaitable[object]]
    rows: int = FEW
    """Rows of one table that are read, and rows in one sort or hash."""
    why: str = ""
    """Where more are allowed: what bounds them, if not the past."""
    everything: bool = False
    """It reads all there is, by its nature; `why` says what bounds it then."""


def last_of(status: str, back: int = 0) -> int:
    """Return the newest job of a status that is not terminal, or the one so many before it."""
    last = 0
    for name, count in groups():
        last += count
        if name == status:
            return last - back
    raise LookupError(status)


def lease(status: str, back: int = 0) -> Lease:
    """Return the lease of a job that a worker has."""
    number = last_of(status, back)
    return Lease(number, 1 if status == "running" else 0, number)


RUNNING = [lease("running", back) for back in range(100)]
CLAIMED = [lease("claimed", back) for back in range(100)]
OLDEST, MIDDLE, NEWEST, MISSING = 1, FINISHED // 2 + 20, ALL, ALL + 10**9
"""Numbers of jobs; the one in the middle completed, asked, and has a row of everything."""
LATE = FINISHED // 2 + 7
"""A job that expired, and had an answer too late."""
ENDS = {"oldest": OLDEST, "middle": MIDDLE, "newest": NEWEST, "missing": MISSING}
