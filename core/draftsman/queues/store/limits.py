"""Limits of concurrency and rates, their use, and the places of jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from draftsman.database.database import Connection, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues.usage_limits import LimitChange, LimitUse

_Q = load("limits")
COUNT_LIMIT: Final = 10_000
"""Waiting jobs of a limit that are counted."""


async def configure(conn: Connection, term: LeaderTerm, rules: Sequence[dict[str, Any]]) -> bool:
    """Replace the limits; False when they are the same, or the term is over."""
    params = {"owner": term.owner, "term": term.term, "limits": json.dumps(rules)}
    return bool(await scalar(conn, _Q["configure"], params))


async def check(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Set changed limits of unfinished jobs; 0 when all of them have been checked."""
    return await scalar(conn, _Q["check"], term.params(limit)) or 0


async def give(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Give free places to waiting jobs; return their number."""
    return await scalar(conn, _Q["give"], term.params(limit)) or 0


async def changes(conn: Connection, limit: int = 50) -> list[LimitChange]:
    """Return the newest changes of the limits, newest first."""
    return await fetch_all(conn, _Q["changes"], {"limit": limit}, LimitChange)


async def uses(conn: Connection, name: str | None = None) -> list[LimitUse]:
    """Return the use of each limit, or of a bucket."""
    params = {"name": name, "most": COUNT_LIMIT}
    return await fetch_all(conn, _Q["uses"], params, LimitUse)
