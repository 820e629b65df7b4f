"""Every named query over a million jobs: its reads, sorts and buffers do not grow with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from draftsman.database.database import Connection, Database
from draftsman.jobs.details import store as read_model
from draftsman.jobs.details.invariants import violations
from draftsman.jobs.details.service.read_model import SCANNED
from draftsman.jobs.job import Status
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from tests.soak.calls import CALLS, query_of
from tests.soak.calls.call import Call
from tests.soak.calls.claim import exchange
from tests.soak.history import ALL, FINISHED, WAITING, seed
from tests.soak.query_recorder import QueryStats, watch
from tests.support.server import Server

WALK = 40
"""Pages for each row of a call: an index of at most four levels, and all indexes for a write."""
START = 200
"""Additional pages: every read of events enters the index of every partition."""
MODES = ("force_custom_plan", "force_generic_plan")
"""Number of calls that a session plans before it reuses a plan."""
PINNED = [key for key in CALLS if query_of(key) in ("claim.exchange", "claim.exchange_after")]
"""Queries of a session with pinned plans."""


@pytest.fixture(scope="module")
def past(server: Server) -> Iterator[str]:
    """Provide the URL of a database with a history, which takes about a minute to create."""
    name = server.create()
    seed(server.url(name))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
async def conn(past: str) -> AsyncIterator[Connection]:
    """Provide a session in that database, configured like those of the pool."""
    db = Database(past, DatabaseSettings(), enums=ENUMS)
    await db.open()
    conn = await db.dedicated_connection()
    yield conn
    await conn.close()
    await db.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", CALLS)
async def test_cost_of_a_query_does_not_depend_on_the_history(
    conn: Connection, key: str, mode: str, record_property: Callable[[str, object], None]
) -> None:
    await conn.execute(f"SET plan_cache_mode = {mode}")
    stats = await watch(conn, CALLS[key].work, CALLS[key].given)
    record_property("cost", (round(stats.ms, 1), stats.buffers, stats.held, stats.read.total()))
    assert query_of(key) in stats.asked
    if not CALLS[key].everything:
        bounded(CALLS[key], stats)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("key", PINNED)
async def test_a_worker_claims_by_its_index_in_order(past: str, key: str) -> None:
    db = Database(past, DatabaseSettings(), enums=ENUMS)
    await db.open()
    try:
        async with db.dedicated_session().connection(60) as conn:
            for first in (CALLS[key], exchange(1, 0), exchange(100, 100, rows=800)):
                await watch(conn, first.work, first.given)
            stats = await watch(conn, CALLS[key].work, CALLS[key].given)
    finally:
        await db.close()
    bounded(CALLS[key], stats)
    (plan,) = stats.plans
    assert "job_states_claim" in str(plan)
    assert plan.sorts() == set(), plan


def bounded(call: Call, stats: QueryStats) -> None:
    """Compare the recorded cost of a call with its maximum."""
    plans = "\n".join(map(str, stats.plans))
    assert stats.whole <= set(call.whole), f"it reads these whole:\n{plans}"
    exceeded = {table: count for table, count in stats.read.items() if count > call.rows}
    assert exceeded == {}, f"it reads more than {call.rows} rows:\n{plans}"
    assert stats.held <= call.rows, f"it holds or sorts more than {call.rows} rows:\n{plans}"
    assert stats.buffers <= START + WALK * call.rows, f"it reads too many pages:\n{plans}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [1, 1000])
async def test_cost_of_a_change_does_not_depend_on_earlier_statements(
    conn: Connection, first: int
) -> None:
    await watch(conn, exchange(first, 0).work)
    stats = await watch(conn, CALLS["jobs.request_cancel"].work)
    assert {table: rows for table, rows in stats.read.items() if rows > 2} == {}


@pytest.mark.timeout(600)
async def test_seeded_history_is_complete_and_valid(past: str, conn: Connection) -> None:
    everything: dict[str, Any] = dict.fromkeys((*SCANNED, "since", "until"))
    everything |= {"statuses": [*map(str, Status)], "lowest": 0, "before": ALL + 1}
    counts = await read_model.counts(conn, everything | {"requested": False}, ALL)
    assert sum(counts.values()) == ALL
    assert sum(count for name, count in counts.items() if name.startswith("waiting")) == WAITING
    assert sum(counts[name] for name in ("completed", "failed", "dead_letter")) > FINISHED * 0.9
    assert {name: rows for name, rows in (await violations(conn)).items() if rows} == {}
