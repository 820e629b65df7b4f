"""Work that transactions left to the leader."""

from __future__ import annotations

from draftsman.database.database import Connection, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm

_Q = load("postponed_work")


async def do_postponed(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Do postponed work that is due; return the number of buckets, keys and jobs."""
    return await scalar(conn, _Q["do_postponed"], term.params(limit) | selection.params) or 0


async def do_postponed_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the buckets, keys and jobs whose work `do_postponed` would do."""
    params = term.params(limit) | selection.params
    return [id for (id,) in await rows(conn, _Q["do_postponed_candidates"], params)]


async def do_cancels(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Cancel jobs of large trees and groups; return their number."""
    return await scalar(conn, _Q["do_cancels"], term.params(limit) | selection.params) or 0


async def do_cancels_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `do_cancels` would cancel."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["do_cancels_candidates"], params)]
