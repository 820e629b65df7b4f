"""Limits, their use, and the places of jobs."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues import store as queues
from draftsman.worker.registry import store as workers
from tests.soak.calls.call import Call, last_of

RULES: Final = [{"scope": "type", "value": "noop", "running": 5, "rate": 90, "period": 60.0}]
FULL: Final = f"""
SET LOCAL session_replication_role = replica;
INSERT INTO draftsman.limits (scope, value, running) VALUES ('type', 'seed', 1000);
INSERT INTO draftsman.limit_buckets (name, running, taken) VALUES ('type:seed', 1000, 1000);
UPDATE draftsman.job_states SET limits = '{{type:seed}}'
 WHERE number BETWEEN {last_of("running", 99)} AND {last_of("running")};
UPDATE draftsman.job_states SET limits = '{{type:seed}}', hold = 'limit', held_by = 'type:seed'
 WHERE number BETWEEN {last_of("queued", 4999)} AND {last_of("resumed")};
SET LOCAL session_replication_role = DEFAULT"""
"""A limit that the running jobs have used up, so that all others wait."""


async def _apply(conn: Connection) -> None:
    """Limit a type, and set the limits of the first jobs."""
    owner = uuid4()
    await conn.execute("UPDATE draftsman.leases SET expires_at = now()")
    term = LeaderTerm(owner, await workers.acquire(conn, "leader", owner, 60, []))
    assert await queues.configure_limits(conn, term, RULES)
    for _ in range(3):
        assert await queues.check_limits(conn, term, 100)
    await queues.give_places(conn, term, 100)
    assert await queues.limit_changes(conn, 10)


_APPLY: Final = Call(
    _apply, 2200, "a hundred jobs of each of eight statuses, and the first hundred of these, twice"
)
CALLS: Final[dict[str, Call]] = {
    "queues.configure_limits": _APPLY,
    "queues.check_limits": _APPLY,
    "queues.give_places": _APPLY,
    "queues.limit_changes": _APPLY,
    "queues.limit_uses": Call(
        queues.limit_uses, 3000, "what runs, and a thousand jobs that may be claimed"
    ),
}
