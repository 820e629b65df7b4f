"""Bringing a database to the schema that this version needs.

Plain numbered SQL files, one transaction each, under one advisory lock, so that ten processes may
start at once. Each file records itself, so that `psql -1 -f` works too; here a checksum is added,
and a file that was edited after it ran is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from psycopg import AsyncConnection

from draftsman import resources
from draftsman.errors import SchemaOutdated
from draftsman.store import schema
from draftsman.store.db import Connection, translated


@dataclass(frozen=True, slots=True)
class Migration:
    """A file, and when it ran here: None when it has not."""

    name: str
    sql: str
    applied_at: datetime | None = None

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def files() -> list[Migration]:
    """Return the migrations of this version, in their order."""
    return [Migration(name, sql) for name, sql in resources.migrations()]


async def state(url: str) -> list[Migration]:
    """Return every migration with the time it was applied.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    async with _connect(url) as conn:
        return await _state(conn)


async def migrate(url: str) -> list[str]:
    """Apply what is missing; return the names. Raises like `state`, and on a file that fails."""
    async with _connect(url) as conn:
        await schema.lock(conn)
        missing = [item for item in await _state(conn) if item.applied_at is None]
        for item in missing:
            await schema.apply(conn, item.name, item.sql, item.checksum)
        return [item.name for item in missing]


async def check(url: str) -> None:
    """Raise SchemaOutdated, naming what is missing, unless every migration was applied."""
    missing = [item.name for item in await state(url) if item.applied_at is None]
    if missing:
        names = ", ".join(missing)
        raise SchemaOutdated(f"migrations are missing: {names}; run: draftsman migrate")


async def restored(url: str) -> int:
    """Start a new epoch of the event feed, after a dump was restored; return it."""
    await check(url)
    async with _connect(url) as conn:
        return await schema.new_epoch(conn)


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[Connection]:
    with translated():
        async with await AsyncConnection.connect(url, autocommit=True) as conn:
            yield conn


async def _state(conn: Connection) -> list[Migration]:
    applied = await schema.applied(conn)
    known = files()
    if newer := sorted(applied.keys() - {item.name for item in known}):
        raise SchemaOutdated(f"the database has {newer[-1]}, which this version does not know")
    found = []
    for item in known:
        checksum, at = applied.get(item.name, (None, None))
        if checksum not in (None, item.checksum):
            raise SchemaOutdated(
                f"migration {item.name} was edited after it was applied;"
                " take the edit back, and put the change into a new file"
            )
        found.append(replace(item, applied_at=at))
    return found
