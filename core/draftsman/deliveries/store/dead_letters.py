"""Dead letters without a notification target."""

from __future__ import annotations

from typing import Any

from draftsman.database.database import Connection, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.target import Target
from draftsman.jobs.runs.run import LeaderTerm

_Q = load("dead_letters")


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


async def notify_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `notify` would notify of."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["notify_candidates"], params)]
