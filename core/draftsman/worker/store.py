"""Maintenance statements of the leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.target import Target
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.retries import CHAIN_LIMIT
from draftsman.jobs.runs.run import LeaderTerm

_Q = load("sweeps")


@dataclass(frozen=True, slots=True)
class RescuedJob:
    """A job rescued from a dead worker, and its new status."""

    number: int
    status: Status
    on_lost: OnLost
    notified: str | None


async def expire(conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL) -> int:
    """Close expired questions; return their number."""
    return len(await rows(conn, _Q["expire"], term.params(limit) | selection.params))


async def escalate(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Escalate expired questions, once; return their number."""
    return len(await rows(conn, _Q["escalate"], term.params(limit) | selection.params))


async def promote(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Queue due jobs; return their number."""
    return len(await rows(conn, _Q["promote"], term.params(limit) | selection.params))


async def do_postponed(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Do postponed work that is due; return the number of buckets, keys and jobs."""
    return await scalar(conn, _Q["do_postponed"], term.params(limit) | selection.params) or 0


async def do_cancels(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Cancel jobs of large trees and groups; return their number."""
    return await scalar(conn, _Q["do_cancels"], term.params(limit) | selection.params) or 0


async def next_due(conn: Connection) -> float | None:
    """Return the seconds until something is due, negative when it is overdue."""
    return await scalar(conn, _Q["next_due"])  # type: ignore[no-any-return]


async def notify(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    target: Target | None,
    selection: Selection = ALL,
) -> list[tuple[int, str]]:
    """Insert deliveries of dead letters without a target; return each with its invoker."""
    params: dict[str, Any] = dict.fromkeys(("channel", "target", "thread"))
    if target is not None:
        params = {"channel": target.channel, "target": target.target, "thread": target.thread}
    letters = await rows(conn, _Q["notify"], term.params(limit) | selection.params | params)
    return [(number, invoker) for number, invoker in letters]


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


async def suspects(conn: Connection, term: LeaderTerm, selection: Selection = ALL) -> int:
    """Try the jobs that were lost together one at a time; return the number of changes."""
    return await scalar(conn, _Q["suspects"], term.params(0) | selection.params) or 0


async def candidates(
    conn: Connection,
    sweep: str,
    term: LeaderTerm,
    limit: int,
    selection: Selection,
    **params: Any,
) -> list[int]:
    """Return the rows that the statement `sweep` would change."""
    params |= term.params(limit) | selection.params
    return [row[0] for row in await rows(conn, _Q[f"{sweep}_candidates"], params)]


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


async def partitions(conn: Connection, term: LeaderTerm, ahead: int) -> int:
    """Create the event partitions of the coming months; return their number."""
    return await scalar(conn, _Q["partitions"], {**term.params(0), "ahead": ahead}) or 0
