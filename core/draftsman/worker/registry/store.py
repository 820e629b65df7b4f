"""Registered workers and leases."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.worker.registry.registered_worker import RegisteredWorker, ServingWorker

_Q = load(__name__)


async def serving(conn: Connection, lease: float) -> list[ServingWorker]:
    """Return the workers that claim jobs now; `lease` in seconds."""
    return await fetch_all(conn, _Q["serving"], {"lease": lease}, ServingWorker)


async def register(
    conn: Connection,
    *,
    id: UUID,
    lock_id: int | None = None,
    host: str,
    host_id: str,
    pid: int,
    pid_started: float,
    version: str,
    types: Sequence[str],
    queues: Sequence[str],
    slots: int,
    targets: Sequence[str] = (),
    descriptions: Sequence[str] = (),
) -> int:
    """Insert or update the worker; return the number of its session lock.

    `targets` are those that it sends deliveries to, such as `webhook:team`; `descriptions` are
    versions of types.
    """
    params = {
        "id": id,
        "lock_id": lock_id,
        "host": host,
        "host_id": host_id,
        "pid": pid,
        "pid_started": pid_started,
        "version": version,
        "types": list(types),
        "queues": list(queues),
        "targets": list(targets),
        "descriptions": list(descriptions),
        "slots": slots,
    }
    return int(await scalar(conn, _Q["register"], params))


async def lock_number(conn: Connection) -> int:
    """Return a number for the session lock of a process without a worker."""
    return int(await scalar(conn, _Q["lock_number"]))


async def hold(conn: Connection, lock_id: int) -> bool:
    """Acquire the session lock on this connection; False while another session holds it."""
    return bool(await scalar(conn, _Q["hold"], {"lock_id": lock_id}))


async def remove(conn: Connection, id: UUID) -> None:
    """Delete a worker that stopped."""
    await execute(conn, _Q["remove"], {"id": id})


async def all_workers(conn: Connection, lease: float) -> list[RegisteredWorker]:
    """Return all registered workers, oldest first; `lease` in seconds."""
    return await fetch_all(conn, _Q["list"], {"lease": lease}, RegisteredWorker)


async def processes(conn: Connection) -> list[tuple[UUID, str, int, float]]:
    """Return id, host, pid and start time of all registered workers."""
    return [(row[0], row[1], row[2], row[3]) for row in await rows(conn, _Q["processes"])]


async def acquire(
    conn: Connection,
    name: str,
    owner: UUID,
    ttl: float,
    dead: Sequence[UUID] = (),
    lock_id: int | None = None,
) -> int | None:
    """Acquire a lease that is free or a dead holder's; return its term, None when it is held.

    With `lock_id`, the lease ends when that session lock is free.
    """
    params = {"name": name, "owner": owner, "ttl": ttl, "dead": list(dead), "lock_id": lock_id}
    term = await scalar(conn, _Q["acquire"], params)
    return None if term is None else int(term)


async def renew(
    conn: Connection, name: str, owner: UUID, term: int, ttl: float, lock_id: int | None = None
) -> bool:
    """Renew the lease of this term; False when it has expired."""
    params = {"name": name, "owner": owner, "term": term, "ttl": ttl, "lock_id": lock_id}
    return await execute(conn, _Q["renew"], params) > 0


async def resign(conn: Connection, name: str, owner: UUID, term: int) -> None:
    """Release the lease."""
    await execute(conn, _Q["resign"], {"name": name, "owner": owner, "term": term})
