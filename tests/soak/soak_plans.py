"""Hot calls over a long past: none reads a large table whole, or far more than it wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from draftsman.domain.actor import Actor
from draftsman.services.intake import invocation, row
from draftsman.settings import DatabaseSettings
from draftsman.store import claim, inspect, intake, questions, settle, sweeps
from draftsman.store.db import Connection, Database
from draftsman.store.sweeps import Term
from tests.soak.history import FINISHED, LIVE, WAITING, WORKER, Marks, seed
from tests.soak.watch import watch
from tests.support.server import Server

MOST = 3000
"""Rows of one table that a call may read: its limits are 100 and 200, `why` counts to 1,000."""
MORE = {"page: completed": WAITING + 4 * LIVE + MOST}
"""Calls that read through what is newer: most jobs are completed, so the planner expects few."""
Call = Callable[[Connection, Marks], Awaitable[object]]


@pytest.fixture(scope="module")
def past(server: Server) -> Iterator[str]:
    """Give the URL of a database with a past; it takes about a minute to make."""
    name = server.create()
    seed(server.url(name))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
async def conn(past: str) -> AsyncIterator[Connection]:
    """Give a session of its own in that database, set up like those of the pool."""
    db = Database(past, DatabaseSettings())
    await db.open()
    conn = await db.dedicated()
    yield conn
    await conn.close()
    await db.close()


def exchange(free: int, done: int, ahead: int = 0) -> Call:
    """Settle so many running jobs, and claim."""
    return lambda conn, marks: claim.exchange(
        conn,
        [(lease, {"n": 1}) for lease in marks.running[:done]],
        worker=WORKER,
        queues=["default", "other"],
        types=["seed"],
        skip=[],
        free=free,
        ahead=ahead,
    )


def submit(count: int, **fields: Any) -> Call:
    """Submit new requests, of which the first was there before."""
    actor = Actor("cli", "soak", "soak")  # type: ignore[arg-type]
    wanted = [invocation(type="seed", key=f"seed:new{n}", **fields) for n in range(count)]
    wanted[0] = invocation(type="seed", key="seed:finished77")
    return lambda conn, _: intake.submit(conn, [row(item, actor, {}) for item in wanted], "soak")


def page(**filters: Any) -> Call:
    """List jobs."""
    nothing = dict.fromkeys(("before", "statuses", "agent", "repo", "tag", "since"))
    return lambda conn, _: inspect.page(conn, {**nothing, "limit": 50, **filters})


CALLS: dict[str, Call] = {
    "exchange: claim 10": exchange(10, 0),
    "exchange: 100 for 100": exchange(100, 100),
    "exchange: prefetch": exchange(10, 10, 100),
    "submit: one": submit(1),
    "submit: a thousand": submit(1000),
    "submit: with a subject": submit(10, subject_key="card"),
    "get": lambda conn, marks: inspect.get(conn, marks.middle),
    "page: newest": page(),
    "page: further on": page(before=FINISHED // 2),
    "page: completed": page(statuses=["completed"]),
    "page: failed, further on": page(statuses=["failed"], before=FINISHED // 2),
    "page: waiting": page(statuses=["waiting_for_input", "waiting_for_approval"]),
    "page: dead_letter, of which there are none": page(statuses=["dead_letter"]),
    "open questions": lambda conn, _: questions.open_ones(conn, None, 200),
    "open question of a job": lambda conn, marks: questions.open_ones(conn, marks.waiting, 1),
    "expire": lambda conn, _: sweeps.expire(conn, Term(), 100),
    "expire: as leader": lambda conn, _: sweeps.expire(conn, Term(WORKER, 1), 100),
    "promote": lambda conn, _: sweeps.promote(conn, Term(), 100),
    "next_due": lambda conn, _: sweeps.next_due(conn),
    "rescue: nobody died": lambda conn, _: sweeps.rescue(conn, Term(), 100, dead=[], lease=300),
    "rescue: a dead worker": lambda conn, _: sweeps.rescue(
        conn, Term(), 100, dead=[WORKER], lease=300
    ),
    "why: queued": lambda conn, marks: inspect.why(conn, marks.queued, 300),
    "why: waiting": lambda conn, marks: inspect.why(conn, marks.waiting, 300),
    "why: completed": lambda conn, marks: inspect.why(conn, marks.middle, 300),
    "trail": lambda conn, marks: inspect.trail(conn, marks.middle, 0, 200),
    "feed: from the beginning": lambda conn, _: inspect.feed(conn, (0, 0, 0), 200),
    "feed: in the middle": lambda conn, marks: inspect.feed(
        conn, (marks.epoch, marks.txid, 0), 200
    ),
    "heartbeat": lambda conn, marks: settle.heartbeat(conn, WORKER, marks.running, draining=False),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CALLS)
async def test_a_hot_call_reads_no_table_whole(conn: Connection, name: str) -> None:
    marks = await Marks.of(conn)
    seen = await watch(conn, lambda: CALLS[name](conn, marks))
    plans = "\n\n".join(seen.plans.values())
    assert seen.whole == set(), f"{name} reads these whole:\n{plans}"
    much = {table: count for table, count in seen.read.items() if count > MORE.get(name, MOST)}
    assert much == {}, f"{name} reads too many rows:\n{plans}"


@pytest.mark.timeout(600)
async def test_the_past_is_as_long_as_it_says_and_sound(past: str, conn: Connection) -> None:
    counts = await inspect.counts(conn)
    assert sum(counts.values()) == FINISHED + WAITING + 4 * LIVE
    assert sum(count for name, count in counts.items() if name.startswith("waiting")) == WAITING
    assert {name: rows for name, rows in (await inspect.invariants(conn)).items() if rows} == {}
