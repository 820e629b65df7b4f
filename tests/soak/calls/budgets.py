"""Budgets: reservations and usage of calls, raises, configuration and costs."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from draftsman.costs import store as budgets
from draftsman.costs.budgets import CallEstimate, CostGroup
from draftsman.database.database import Connection
from draftsman.ids import new_id
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.worker.registry import store as workers
from tests.soak.calls.call import RUNNING, Call

RUN: Final = RUNNING[0]
OWN: Final = {"cost_usd": 5.0}


async def _call(conn: Connection) -> None:
    """Reserve a call, record its usage, reserve another and release it."""
    estimate = CallEstimate("m", 10, 10, 0.5)
    first = new_id()
    second = new_id()
    assert await budgets.reserve(conn, RUN, first, estimate, OWN)
    assert await budgets.record(conn, RUN, {"cost_usd": 1}, "m", first, OWN) == []
    assert await budgets.reserve(conn, RUN, second, estimate, OWN)
    await budgets.release(conn, second)


async def _configure(conn: Connection) -> None:
    """Configure budgets, and read their use."""
    owner = uuid4()
    await conn.execute("UPDATE draftsman.leases SET expires_at = now()")
    term = LeaderTerm(owner, await workers.acquire(conn, "leader", owner, 60, []))
    rules = [{"scope": "repo", "value": "*", "cost_usd": 5}]
    assert await budgets.configure(conn, term, rules, "Europe/Berlin")
    assert await budgets.reserve(conn, RUN, new_id(), CallEstimate("m", 10, 10, 0.5), OWN)
    assert await budgets.uses(conn)
    assert await budgets.release_lost(conn, term, 100) == 0


_CALL: Final = Call(_call)
_CONFIGURE: Final = Call(_configure, 2000, "the jobs that run")
CALLS: Final[dict[str, Call]] = {
    "costs.reserve": _CALL,
    "costs.record": _CALL,
    "costs.release": _CALL,
    "costs.configure": _CONFIGURE,
    "costs.uses": Call(_configure, 4000, "the newest jobs of each status"),
    "costs.release_lost": _CONFIGURE,
    "costs.costs": Call(lambda conn: budgets.costs(conn, CostGroup.REPO, 7)),
    "costs.add": Call(lambda conn: budgets.add(conn, RUN, 1, 5.0)),
}
