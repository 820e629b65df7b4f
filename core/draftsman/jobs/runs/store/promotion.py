"""Scheduled and retrying jobs that are due."""

from __future__ import annotations

from draftsman.database.database import Connection, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm

_Q = load("promotion")


async def promote(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Queue due jobs; return their number."""
    return len(await rows(conn, _Q["promote"], term.params(limit) | selection.params))


async def promote_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `promote` would queue."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["promote_candidates"], params)]
