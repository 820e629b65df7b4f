"""Dead workers, and when the leader has something to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.retries import CHAIN_LIMIT
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.worker.run_trace import LostRun

_Q = load(__name__)


@dataclass(frozen=True, slots=True)
class RescuedJob:
    """A job rescued from a dead worker, and its new status."""

    number: int
    status: Status
    on_lost: OnLost
    notified: str | None


async def rescue(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    selection: Selection = ALL,
    *,
    dead: Sequence[UUID],
    lease: float,
) -> list[RescuedJob]:
    """Rescue jobs of dead workers, and runs without a heartbeat for `lease` seconds."""
    params = {"dead": list(dead), "lease": lease, "longest": CHAIN_LIMIT}
    params |= term.params(limit) | selection.params
    return await fetch_all(conn, _Q["rescue"], params, RescuedJob)


async def rescue_candidates(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    selection: Selection,
    *,
    dead: Sequence[UUID],
    lease: float,
) -> list[int]:
    """Return the jobs that `rescue` would rescue."""
    params = {"dead": list(dead), "lease": lease}
    params |= term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["rescue_candidates"], params)]


async def lost_runs(conn: Connection, jobs: Sequence[int]) -> list[LostRun]:
    """Return the runs of rescued jobs that this transaction has closed."""
    return await fetch_all(conn, _Q["lost_runs"], {"jobs": list(jobs)}, LostRun)


async def suspects(conn: Connection, term: LeaderTerm, selection: Selection = ALL) -> int:
    """Try the jobs that were lost together one at a time; return the number of changes."""
    return await scalar(conn, _Q["suspects"], term.params(0) | selection.params) or 0


async def suspects_candidates(conn: Connection, selection: Selection) -> list[int]:
    """Return the jobs that were lost together."""
    return [job for (job,) in await rows(conn, _Q["suspects_candidates"], selection.params)]


async def not_followed(conn: Connection, job: int, reason: str) -> None:
    """Record why a lost job was not replaced by a new job."""
    await execute(conn, _Q["not_followed"], {"job": job, "reason": reason})


async def watch_locks(conn: Connection) -> None:
    """Record since when the session locks of workers are free."""
    await execute(conn, _Q["watch_locks"])


async def unlocked(conn: Connection, seconds: float) -> list[UUID]:
    """Return workers that were silent, with a free session lock, for `seconds`."""
    return [row[0] for row in await rows(conn, _Q["unlocked"], {"seconds": seconds})]


async def deregister(
    conn: Connection,
    term: LeaderTerm,
    selection: Selection = ALL,
    *,
    dead: Sequence[UUID],
    after: float,
) -> int:
    """Delete dead workers that hold no jobs; return their number."""
    params = {**term.params(0), **selection.params, "dead": list(dead), "after": after}
    return await execute(conn, _Q["deregister"], params)


async def deregister_candidates(
    conn: Connection,
    term: LeaderTerm,
    selection: Selection,
    *,
    dead: Sequence[UUID],
    after: float,
) -> list[int]:
    """Return the session locks of the workers that `deregister` would delete."""
    params = {**term.params(0), **selection.params, "dead": list(dead), "after": after}
    return [lock for (lock,) in await rows(conn, _Q["deregister_candidates"], params)]


# When the leader has something to do.


async def next_due(conn: Connection, times: Iterable[LiteralString]) -> float | None:
    """Return the seconds until the earliest of the times of sweeps; None when there is none."""
    return await scalar(conn, next_due_query(times))  # type: ignore[no-any-return]


def next_due_query(times: Iterable[LiteralString]) -> LiteralString:
    """Return the query of the seconds until the earliest of these times."""
    return _Q["next_due"].format(times=", ".join(f"({time})" for time in times))
