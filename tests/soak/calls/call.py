"""A call of the store, the number of rows that it may touch, and jobs to call it with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import Lease
from tests.soak.history import ALL, FINISHED, groups

ALIVE = 86_400.0
"""A lease that the workers of the history have, however long ago it was seeded."""
FEW = 300
"""Maximum rows of a table that a call may read: pages and sweeps take 200, and read some more."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and its maximum cost."""

    work: Callable[[Connection], Awaitable[object]]
    rows: int = FEW
    """Maximum rows read of a table, and rows in a sort or hash."""
    why: str = ""
    """The limit of a call that may read more, but not the whole history."""
    everything: bool = False
    """Whether it reads all rows by design; `why` explains the limit."""
    whole: tuple[str, ...] = ()
    """Tables that it reads completely by design; `why` says how large they are."""
    given: str = ""
    """Statements before it, for a state that the history does not have."""


def last_of(status: str, back: int = 0) -> int:
    """Return the newest job of a status that is not terminal, or a job `before` it."""
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
OLDEST = 1
MIDDLE = FINISHED // 2 + 20
NEWEST = ALL
MISSING = ALL + 10**9
"""Numbers of jobs; the middle job completed, asked, and has a row in every table."""
LATE = FINISHED // 2 + 7
"""A job that expired before its answer arrived."""
ENDS = {"oldest": OLDEST, "middle": MIDDLE, "newest": NEWEST, "missing": MISSING}
