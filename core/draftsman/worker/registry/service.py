"""Registration of workers: host, process, job types and session lock."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar, Final
from uuid import UUID

from draftsman.database.database import Connection, Database, DedicatedSession
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import publish
from draftsman.processes import host
from draftsman.worker.registry import store
from draftsman.worker.registry.registered_worker import RegisteredWorker

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to wait for a connection before the database counts as unreachable."""


class SessionLock:
    """A session lock that shows other processes that this process is alive.

    For processes without a worker; `WorkerRegistration` holds that of a worker.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    async def hold(self, conn: Connection) -> bool:
        """Acquire the lock on this connection, with the same number each time.

        False while another session holds it.
        """
        if self.number is None:
            self.number = await store.lock_number(conn)
        return await store.hold(conn, self.number)


class NamedLease:
    """The lease of the only process that reads a chat or forge; a subclass has its name."""

    lease_name: ClassVar[str]
    _db: Database

    async def acquire(self, owner: UUID, seconds: float, lock: int | None = None) -> int | None:
        """Acquire or renew the lease; return its term, None where it is held.

        `lock` is the number of this process's session lock: the lease ends with it.
        """
        async with self._db.connection() as conn:
            return await store.acquire(conn, self.lease_name, owner, seconds, lock_id=lock)

    async def renew(self, owner: UUID, term: int, seconds: float, lock: int | None = None) -> bool:
        """Renew the lease of this term; False when it has expired."""
        async with self._db.connection() as conn:
            return await store.renew(
                conn, self.lease_name, owner=owner, term=term, ttl=seconds, lock_id=lock
            )

    async def resign(self, owner: UUID, term: int) -> None:
        """Release the lease."""
        async with self._db.connection() as conn:
            await store.resign(conn, self.lease_name, owner, term)


class WorkerRegistration:
    """The registration of a worker process, with a new id at each start."""

    def __init__(
        self,
        db: Database,
        id: UUID,
        *,
        version: str,
        types: Sequence[str],
        queues: Sequence[str],
        slots: int,
        targets: Sequence[str] = (),
        described: Sequence[TypeDescription] = (),
        session: DedicatedSession | None = None,
    ) -> None:
        """`session` is the session for registration: the heartbeat's, which is always free.

        `targets` are those that it sends deliveries to, such as `webhook:team`; `described` are the
        types that it publishes.
        """
        self._targets = targets
        self._described = described
        self._db = db
        self._session = session or db.dedicated_session(pinned=False)
        self._id = id
        self._version = version
        self._types = types
        self._queues = queues
        self._slots = slots
        self._lock_id: int | None = None

    @property
    def number(self) -> int | None:
        """The number of the session lock, None before registration."""
        return self._lock_id

    async def register(self) -> None:
        """Publish its types, and register the worker, also again after it was removed as dead."""
        pid = os.getpid()
        async with self._session.connection(CONNECT_TIMEOUT) as conn:
            await publish(conn, self._described)
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
                targets=self._targets,
                descriptions=[type.version for type in self._described],
            )

    async def hold(self, conn: Connection) -> bool:
        """Acquire the session lock that shows other hosts that this worker is alive.

        False before registration, and while another session holds it.
        """
        return self._lock_id is not None and await store.hold(conn, self._lock_id)

    async def leave(self) -> None:
        """Delete the worker's registration."""
        async with self._db.connection() as conn:
            await store.remove(conn, self._id)


async def live_workers(db: Database, lease: float) -> list[RegisteredWorker]:
    """Return the registered workers that are not lost; `lease` in seconds."""
    async with db.connection() as conn:
        workers = await store.all_workers(conn, lease)
    return [worker for worker in workers if not worker.lost]
