"""Limits, their use, and the places of jobs."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from draftsman.domain.run import LeaderTerm
from draftsman.store import workers
from draftsman.store.postgres.database import Connection
from draftsman.store.scheduling import limits
from tests.soak.calls.call import Call

RULES: Final = [{"scope": "type", "value": "noop", "running": 5, "rate": 90, "period": 60.0}]


async def _apply(conn: Connection) -> None:
    """Limit a type, and set the limits of the first jobs."""
    owner = uuid4()
    await conn.execute("UPDATE draftsman.leases SET expires_at = now()")
    term = LeaderTerm(owner, await workers.acquire(conn, "leader", owner, 60, []))
    assert await limits.configure(conn, term, RULES)
    for _ in range(3):
        assert await limits.check(conn, term, 100)
    await limits.give(conn, term, 100)
    assert await limits.changes(conn, 10)


_APPLY: Final = Call(_apply, 1000, "the buckets and the first jobs")
CALLS: Final[dict[str, Call]] = {
    "limits.configure": _APPLY,
    "limits.check": _APPLY,
    "limits.give": _APPLY,
    "limits.changes": _APPLY,
    "limits.uses": Call(limits.uses, 3000, "what runs, and a thousand jobs that may be claimed"),
}
