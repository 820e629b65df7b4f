"""The schema's own rows: which migrations ran here, and the epoch of the feed."""

from __future__ import annotations

from datetime import datetime

from psycopg import errors

from draftsman.store.postgres.database import Connection, execute, rows, scalar
from draftsman.store.queries import load

_Q = load("schema")


async def lock(conn: Connection) -> None:
    """Wait for every other migration; the lock goes with the session."""
    await execute(conn, _Q["lock"])


async def applied(conn: Connection) -> dict[str, tuple[str | None, datetime]]:
    """Return checksum and time of every migration that ran here, by name."""
    try:
        return {name: (checksum, at) for name, checksum, at in await rows(conn, _Q["applied"])}
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return {}


async def apply(conn: Connection, name: str, sql: str, checksum: str, lock: float) -> None:
    """Run one file, which records itself, in one transaction, and add its checksum.

    It waits at most `lock` seconds for each lock.
    """
    async with conn.transaction():
        await execute(conn, _Q["lock_timeout"], {"timeout": f"{round(lock * 1000)}ms"})
        await conn.execute(sql.encode())
        await execute(conn, _Q["record"], {"name": name, "checksum": checksum})


async def lock_holders(conn: Connection) -> list[str]:
    """Return who has held locks on the schema's tables for longest."""
    return [row[0] for row in await rows(conn, _Q["lock_holders"])]


async def grant_roles(conn: Connection) -> str:
    """Give the group roles their rights; return what a DBA has to run first, else nothing."""
    return str(await scalar(conn, _Q["grant_roles"]))


async def new_epoch(conn: Connection) -> int:
    """Start a new epoch of the feed."""
    return int(await scalar(conn, _Q["new_epoch"]))
