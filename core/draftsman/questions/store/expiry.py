"""Questions whose time is over."""

from __future__ import annotations

from draftsman.database.database import Connection, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm

_Q = load("expiry")


async def expire(conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL) -> int:
    """Close expired questions; return their number."""
    return len(await rows(conn, _Q["expire"], term.params(limit) | selection.params))


async def expire_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions that `expire` would close."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["expire_candidates"], params)]


async def escalate(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Escalate expired questions, once; return their number."""
    return len(await rows(conn, _Q["escalate"], term.params(limit) | selection.params))


async def escalate_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions that `escalate` would change."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["escalate_candidates"], params)]
