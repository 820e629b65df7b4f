"""The product's side: a database for each example, two sessions, a frozen clock, and cuts.

Within a transaction `draftsman.now()` is exactly the example's time, so that the model knows due
times to the microsecond. A cut is a connection that really breaks, or a reply that never arrives.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg

from draftsman.database.database import Connection, Database, DedicatedSession
from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.runs.store import claim
from draftsman.processes import host
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import settings_model
from draftsman.worker.registry import store as workers
from draftsman_testing.people import GROUPS, PEOPLE
from draftsman_testing.pooled_line import PooledLine
from tests.core.stateful.model.sweeps import FORGOTTEN, LEASE
from tests.support.server import Server

T = TypeVar("T")
BEGIN: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""The value of `draftsman.now()` at second 0 of an example."""
QUEUES: Final = ("one", "two")
TYPES: Final = ("noop", "other")
FLEET: Final = (TYPES, TYPES[:1])
"""The types that each worker handles."""
UNHANDLED: Final = "unhandled"
"""A type that no worker handles."""
CUTS: Final = ("before", "uncommitted", "committed")
"""When a connection dies: before its first statement, before its commit, before its reply."""
CLOCK: Final = (
    "SELECT set_config('draftsman.clock_offset',"
    " make_interval(secs => extract(epoch FROM %s::timestamptz - now())::float8)::text, true)"
)
PASSED: Final = (
    "SELECT DISTINCT from_status::text, to_status::text FROM draftsman.events"
    " WHERE from_status IS NOT NULL"
)
LOOK: Final = """
SELECT j.number, j.lease_token, jsonb_build_object(
    'status', j.status, 'version', j.version, 'claimed_from', j.claimed_from,
    'run_count', j.run_count, 'attempts', j.attempts, 'retry_count', j.retry_count,
    'error_class', j.error_class, 'canceled', j.cancel_requested_at IS NOT NULL,
    'result', j.result -> 'n', 'retry_of', j.retry_of, 'answers', j.overrides -> 'answers',
    'due', extract(epoch FROM CASE j.status WHEN 'scheduled' THEN j.run_at
                   WHEN 'retrying' THEN j.next_retry_at END - %(begin)s),
    'job_events', (SELECT jsonb_agg(e.kind ORDER BY e.id) FROM draftsman.events e
               WHERE e.job = j.number),
    'runs', (SELECT coalesce(jsonb_agg(r.status ORDER BY r.ordinal), '[]')
               FROM draftsman.job_runs r WHERE r.job = j.number),
    'beat', (SELECT extract(epoch FROM r.heartbeat_at - %(begin)s)
               FROM draftsman.job_runs r WHERE r.job = j.number AND r.status = 'running'),
    'questions', (SELECT coalesce(jsonb_agg(jsonb_build_array(
                         q.key, q.status, q.resolution -> 'outcome',
                         extract(epoch FROM q.expires_at - %(begin)s),
                         extract(epoch FROM t.remind_at - %(begin)s),
                         t.escalated_at IS NOT NULL) ORDER BY q.ordinal), '[]')
                    FROM draftsman.job_questions q
                    JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal
                   WHERE q.job = j.number),
    'responses', (SELECT coalesce(jsonb_agg(jsonb_build_array(a.question, a.voter, a.accepted)
                             ORDER BY a.id), '[]')
               FROM draftsman.job_answers a WHERE a.job = j.number),
    'checkpoints', (SELECT coalesce(jsonb_agg(c.data -> 'n' ORDER BY c.id), '[]')
                      FROM draftsman.job_checkpoints c WHERE c.job = j.number),
    'steps', (SELECT coalesce(jsonb_object_agg(s.key, s.result), '{}')
                FROM draftsman.job_steps s WHERE s.job = j.number),
    'logs', (SELECT count(*) FROM draftsman.run_log_chunks l WHERE l.job = j.number))
  FROM draftsman.jobs j
 ORDER BY j.number
"""


class FrozenDatabase(Database):
    """A session of a process with the clock of the example."""

    now = BEGIN
    cut: str | None = None
    meanwhile: Callable[[], Awaitable[None]] | None = None
    admin: psycopg.Connection[Any]
    _lent: Connection | None = None

    def dedicated_session(
        self, *, pinned: bool = True, lease: float | None = None
    ) -> DedicatedSession:
        """Return a session whose clock stands still and that can be cut, like any other."""
        return PooledLine(self, pinned=pinned, lease=lease)

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction at that time.

        If an example says so, once: cut it, or run another session before its commit.
        """
        if self._lent is not None:
            yield self._lent
            return
        cut = self.cut
        self.cut = None
        meanwhile = self.meanwhile
        self.meanwhile = None
        async with super().connection(wait) as conn, conn.transaction():
            await conn.execute(CLOCK, (self.now,))
            if cut == "before":
                self._kill(conn)
            yield conn
            if meanwhile is not None:
                await meanwhile()
            if cut in ("uncommitted", "committed") and not await _has_written(conn):
                self.cut = cut  # a cache was read, and the writes follow
                return
            if cut == "uncommitted":
                self._kill(conn)
        if cut == "committed":
            raise DatabaseUnreachable("the connection was cut after the commit")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Lend a connection as `connection` does: nobody writes meanwhile."""
        async with self.connection() as conn:
            yield conn

    @asynccontextmanager
    async def shared_connection(self) -> AsyncIterator[Connection]:
        """Lend a connection that all reads of the block use in turn, in one transaction."""
        async with self.connection() as conn:
            self._lent = conn
            try:
                yield conn
            finally:
                self._lent = None

    def _kill(self, conn: Connection) -> None:
        self.admin.execute("SELECT pg_terminate_backend(%s, 10000)", (conn.info.backend_pid,))


class World:
    """The database of an example and the services of two processes over it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._name = server.create()
        self._loop = asyncio.Runner()
        url = server.url(self._name)
        settings = settings_model().model_validate(
            {
                "database_url": url,
                "database": {"pool_size": 2},
                "people": PEOPLE,
                "groups": GROUPS,
                "worker": {"lease": LEASE, "heartbeat": 10},
                "sweeps": {"deregister_after": FORGOTTEN},
                "types": {name: {"base_delay": 1, "max_delay": 1} for name in TYPES},
            }
        )
        self.dbs = [FrozenDatabase(url, settings.database, enums=ENUMS) for _ in range(2)]
        self.rts = [wire(settings, db, False) for db in self.dbs]
        self._reader = psycopg.connect(url, autocommit=True)
        for db in self.dbs:
            db.admin = server.admin
            self.run(db.open())

    def close(self) -> None:
        """Drop the database."""
        for db in self.dbs:
            self.run(db.close())
        self._reader.close()
        self._loop.close()
        self._server.leave(self._name)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._loop.run(work)

    def overlap(
        self, first: Callable[[Runtime], Awaitable[T]], second: Callable[[Runtime], Awaitable[T]]
    ) -> tuple[T, T]:
        """Run the first in a session and, before it commits, the second in another."""
        return self.run(self._overlap(first, second))

    async def _overlap(
        self, first: Callable[[Runtime], Awaitable[T]], second: Callable[[Runtime], Awaitable[T]]
    ) -> tuple[T, T]:
        results: list[T] = []

        async def meanwhile() -> None:
            results.append(await second(self.rts[1]))

        self.dbs[0].meanwhile = meanwhile
        return await first(self.rts[0]), results[0]

    def set_clock(self, seconds: float) -> None:
        """Set the clock of every session."""
        for db in self.dbs:
            db.now = at(seconds)

    def look(self) -> list[tuple[int, int | None, dict[str, Any]]]:
        """Return number, lease token and facts of every job, in the order of their numbers."""
        return self._reader.execute(LOOK, {"begin": BEGIN}).fetchall()

    def passed(self) -> list[tuple[str, str]]:
        """Return the transitions of the jobs."""
        return self._reader.execute(PASSED).fetchall()

    def order(self, queue: str) -> list[int]:
        """Return in which order the real claim hands out a queue, and take it back."""
        return self.run(self._order(queue))

    def find_by_type(self, type: str) -> None:
        """Let the waiting jobs of a type be found by type, as the leader does for many of them."""
        self._reader.execute(
            "UPDATE draftsman.job_states SET by_type = true"
            " WHERE type = %s AND status IN ('queued', 'resumed')",
            (type,),
        )

    async def register(self, worker: int, *, here: bool) -> None:
        """Register a worker: this process, or a process on an invisible host."""
        async with self.dbs[worker].connection() as conn:
            await workers.register(
                conn,
                id=worker_id(worker),
                lock_id=worker + 1,
                host="here" if here else "far",
                host_id=host.identity() if here else "far",
                pid=os.getpid(),
                pid_started=host.process_start_time(os.getpid()) or 0.0,
                version="0",
                types=FLEET[worker],
                queues=QUEUES,
                slots=2,
            )

    async def _order(self, queue: str) -> list[int]:
        async with self.dbs[0].connection() as conn, conn.transaction(force_rollback=True):
            claimed = await claim.exchange(
                conn,
                [],
                worker=worker_id(0),
                queues=[queue],
                types=[*TYPES, UNHANDLED],
                free=1000,
                ahead=0,
            )
        return [work.number for work in claimed]


async def _has_written(conn: Connection) -> bool:
    cursor = await conn.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
    row = await cursor.fetchone()
    return bool(row and row[0])


def worker_id(worker: int) -> UUID:
    """Return the id of a worker."""
    return UUID(int=worker + 1)


def at(seconds: float) -> datetime:
    """Return the instant of a second of the example."""
    return BEGIN + timedelta(seconds=seconds)
