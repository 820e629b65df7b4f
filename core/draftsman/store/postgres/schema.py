"""Applied migrations, group roles and the epoch of the event feed."""

from __future__ import annotations

from datetime import datetime

from psycopg import errors

from draftsman.store.postgres.database import Connection, execute, rows, scalar
from draftsman.store.postgres.session_settings import OF_SESSIONS, PINNED
from draftsman.store.queries import load

_Q = load("schema")


async def lock(conn: Connection) -> None:
    """Acquire the migration lock, which ends with the session."""
    await execute(conn, _Q["lock"])


async def applied(conn: Connection) -> dict[str, tuple[str | None, datetime]]:
    """Return (checksum, time) of the applied migrations, by name."""
    try:
        return {name: (checksum, at) for name, checksum, at in await rows(conn, _Q["applied"])}
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return {}


async def apply(
    conn: Connection, name: str, sql: str, checksum: str, lock: float, *, grant: bool
) -> str:
    """Run a migration, which records itself, in one transaction, and add its checksum.

    It waits at most `lock` seconds for each lock. `grant` also grants the rights of the group
    roles; returns the SQL that an administrator must run first.
    """
    async with conn.transaction():
        await execute(conn, _Q["lock_timeout"], {"timeout": f"{round(lock * 1000)}ms"})
        await conn.execute(sql.encode())
        await execute(conn, _Q["record"], {"name": name, "checksum": checksum})
        return await grant_roles(conn) if grant else ""


async def lock_holders(conn: Connection) -> list[str]:
    """Return the sessions that have held locks on draftsman's tables for longest."""
    return [row[0] for row in await rows(conn, _Q["lock_holders"])]


async def grant_roles(conn: Connection) -> str:
    """Grant the rights of the group roles; return the SQL that an administrator must run first."""
    return str(await scalar(conn, _Q["grant_roles"]))


async def new_epoch(conn: Connection) -> int:
    """Start a new epoch of the event feed."""
    return int(await scalar(conn, _Q["new_epoch"]))


async def foreign_settings(conn: Connection) -> list[str]:
    """Return the settings of the database and the role that apply to draftsman's sessions."""
    pinned = [*PINNED, *OF_SESSIONS, "client_encoding", "statement_timeout"]
    return [row[0] for row in await rows(conn, _Q["foreign_settings"], {"pinned": pinned})]
