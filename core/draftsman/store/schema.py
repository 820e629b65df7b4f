"""The schema's own rows: which migrations ran here, and the epoch of the feed."""

from __future__ import annotations

from datetime import datetime

from psycopg import errors

from draftsman.store.db import Connection, execute, rows, scalar
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


async def apply(conn: Connection, name: str, sql: str, checksum: str) -> None:
    """Run one file, which records itself, in one transaction, and add its checksum."""
    async with conn.transaction():
        await conn.execute(sql.encode())
        await execute(conn, _Q["record"], {"name": name, "checksum": checksum})


async def new_epoch(conn: Connection) -> int:
    """Start a new epoch of the feed."""
    return int(await scalar(conn, _Q["new_epoch"]))
