"""A worker's row: where it runs, what it knows, and that it is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from draftsman import host
from draftsman.store import workers as store
from draftsman.store.postgres.database import Connection, Database, DedicatedSession

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to connect before the database counts as unreachable."""


class SessionLock:
    """The lock by which other processes see that this one is there, held by a session of its own.

    It is one of the workers' locks: `Presence` has a registered worker's.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    async def hold(self, conn: Connection) -> None:
        """Take the lock on this connection, the same one as before."""
        if self.number is None:
            self.number = await store.lock_number(conn)
        await store.hold(conn, self.number)


class WorkerRegistration:
    """Registers one worker process. Its id is new with each start: names outlive processes."""

    def __init__(
        self,
        db: Database,
        id: UUID,
        *,
        version: str,
        types: Sequence[str],
        queues: Sequence[str],
        slots: int,
        line: DedicatedSession | None = None,
    ) -> None:
        """With the session that registers the worker: the heartbeat's, for which nothing waits."""
        self._db = db
        self._line = line or db.dedicated_session(pinned=False)
        self._id = id
        self._version = version
        self._types = types
        self._queues = queues
        self._slots = slots
        self._lock_id: int | None = None

    @property
    def number(self) -> int | None:
        """The number of the session lock, None before it is registered."""
        return self._lock_id

    async def register(self) -> None:
        """Enter the worker, again after somebody took it for dead."""
        pid = os.getpid()
        async with self._line.connection(CONNECT_TIMEOUT) as conn:
            self._lock_id = await store.register(
                conn,
                id=self._id,
                lock_id=self._lock_id,
                host=host.name(),
                host_id=host.identity(),
                pid=pid,
                pid_started=host.process_start_time(pid) or 0.0,
                version=self._version,
                types=self._types,
                queues=self._queues,
                slots=self._slots,
            )

    async def hold(self, conn: Connection) -> None:
        """Take the session lock that tells other hosts that this worker lives."""
        if self._lock_id is not None:
            await store.hold(conn, self._lock_id)

    async def leave(self) -> None:
        """Take the worker off the list."""
        async with self._db.connection() as conn:
            await store.remove(conn, self._id)
