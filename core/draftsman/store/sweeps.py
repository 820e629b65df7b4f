"""Rows of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from draftsman.domain.job import OnLost, Status
from draftsman.domain.messages.target import Target
from draftsman.domain.retries.retry_policy import CHAIN_LIMIT
from draftsman.store.postgres.database import Connection, execute, fetch_all, rows, scalar
from draftsman.store.queries import load

_Q = load("sweeps")

NO_OWNER = UUID(int=0)


@dataclass(frozen=True, slots=True)
class LeaderTerm:
    """The leader's lease that a sweep proves; `by_hand` proves none."""

    owner: UUID = NO_OWNER
    term: int | None = None

    def params(self, limit: int) -> dict[str, Any]:
        """Return what every sweep statement takes."""
        return {"owner": self.owner, "term": self.term, "limit": limit}


@dataclass(frozen=True, slots=True)
class RescuedJob:
    """A job taken out of dead hands, and where it went."""

    number: int
    status: Status
    on_lost: OnLost
    notified: str | None


async def expire(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Close questions whose time is over; return how many."""
    return len(await rows(conn, _Q["expire"], term.params(limit)))


async def escalate(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Put questions whose time is over to others as well, once; return how many."""
    return len(await rows(conn, _Q["escalate"], term.params(limit)))


async def promote(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Queue what is due; return how many."""
    return len(await rows(conn, _Q["promote"], term.params(limit)))


async def next_due(conn: Connection) -> float | None:
    """Return the seconds until something is due, negative when it is already."""
    return await scalar(conn, _Q["next_due"])  # type: ignore[no-any-return]


async def notify(
    conn: Connection, term: LeaderTerm, limit: int, target: Target | None
) -> list[tuple[int, str]]:
    """Write dead letters that nobody hears of to a target; return each with its invoker."""
    params: dict[str, Any] = dict.fromkeys(("channel", "target", "thread"))
    if target is not None:
        params = {"channel": target.channel, "target": target.target, "thread": target.thread}
    found = await rows(conn, _Q["notify"], term.params(limit) | params)
    return [(number, invoker) for number, invoker in found]


async def rescue(
    conn: Connection, term: LeaderTerm, limit: int, *, dead: Sequence[UUID], lease: float
) -> list[RescuedJob]:
    """Take jobs back from dead workers and runs silent for longer than `lease` seconds."""
    params = {**term.params(limit), "dead": list(dead), "lease": lease, "longest": CHAIN_LIMIT}
    return await fetch_all(conn, _Q["rescue"], params, RescuedJob)


async def not_followed(conn: Connection, job: int, reason: str) -> None:
    """Note in the trail of a lost job why no new one took its place."""
    await execute(conn, _Q["not_followed"], {"job": job, "reason": reason})


async def watch_locks(conn: Connection) -> None:
    """Note since when a worker's session lock is free."""
    await execute(conn, _Q["watch_locks"])


async def unlocked(conn: Connection, seconds: float) -> list[UUID]:
    """Return workers whose lock has been free and who have been silent for so long."""
    return [row[0] for row in await rows(conn, _Q["unlocked"], {"seconds": seconds})]


async def reap(conn: Connection, term: LeaderTerm, *, dead: Sequence[UUID], after: float) -> int:
    """Forget dead workers that hold nothing; return how many."""
    params = {**term.params(0), "dead": list(dead), "after": after}
    return await execute(conn, _Q["reap"], params)


async def partitions(conn: Connection, term: LeaderTerm, ahead: int) -> int:
    """Make the trail's partitions for the coming months; return how many were made."""
    return await scalar(conn, _Q["partitions"], {**term.params(0), "ahead": ahead}) or 0
