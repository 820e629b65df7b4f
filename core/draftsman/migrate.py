"""Bringing a database to the schema that this version needs.

Plain numbered SQL files, one transaction each, under one advisory lock, so that ten processes may
start at once. Each file records itself, so that `psql -1 -f` works too; here a checksum is added,
and a file that was edited after it ran is refused.

A file that needs a lock which others hold gives up after two seconds and tries again: whoever
comes later waits behind it, and workers must not stand still for long.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from psycopg import AsyncConnection, errors

from draftsman import resources
from draftsman.errors import CommandHint, LostRace, SchemaOutdated, SchemaUnsupported
from draftsman.store.postgres import schema
from draftsman.store.postgres.database import Connection, translate_errors

LOCK_TIMEOUT: Final = 2.0
"""Seconds that a migration waits for a lock, and others behind it."""
RETRY_DELAY: Final = 1.0
"""Seconds between two tries, in which those others get on."""
MAX_ATTEMPTS: Final = 100
"""Tries of one file, five minutes in all."""
UNRELEASED: Final = "0001_core"
"""First migration of the versions before the first release, which numbered them otherwise."""


ROLES_HINT: Final = (
    "this role may not create the group roles of workers, bots, people and readers; let a DBA run:"
    " {}then run: draftsman migrate --grant"
)


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


def available() -> list[Migration]:
    """Return the migrations of this version, in their order."""
    return [Migration(name, sql) for name, sql in resources.migrations()]


async def applied_migrations(url: str) -> list[Migration]:
    """Return every migration with the time it was applied.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    async with _connect(url) as conn:
        return await _state(conn)


async def migrate(url: str, say: Callable[[str], None] = lambda text: None) -> list[str]:
    """Apply what is missing; return the names.

    `say` is told for whom a file waits. Raises like `state`, on a file that fails, and LostRace
    when others held for five minutes what a file needs.
    """
    async with _connect(url) as conn:
        await schema.lock(conn)
        missing = [item for item in await _state(conn) if item.applied_at is None]
        for item in missing:
            await _apply(conn, item, say)
        if missing and (statements := await schema.grant_roles(conn)):
            say(ROLES_HINT.format(statements))
        return [item.name for item in missing]


async def grant(url: str) -> str:
    """Give the group roles their rights; return what a DBA has to run first, else nothing."""
    async with _connect(url) as conn:
        await schema.lock(conn)
        await _compare(conn)
        return await schema.grant_roles(conn)


async def check(url: str) -> None:
    """Raise SchemaOutdated, naming what is missing, unless every migration was applied."""
    _refuse_missing(await applied_migrations(url))


async def check_compatible(url: str) -> str | None:
    """Raise SchemaOutdated unless this version can work here; return what is newer than it.

    Each version works on the schema of the next one, so that workers of both can run side by side.
    """
    async with _connect(url) as conn:
        found, newer = await _compare(conn)
    _refuse_missing(found)
    return newer


async def start_epoch(url: str) -> int:
    """Start a new epoch of the event feed, after a dump was restored; return it."""
    await check(url)
    async with _connect(url) as conn:
        return await schema.new_epoch(conn)


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[Connection]:
    with translate_errors():
        async with await AsyncConnection.connect(url, autocommit=True) as conn:
            yield conn


async def _apply(conn: Connection, item: Migration, say: Callable[[str], None]) -> None:
    """Run one file; try again while others hold a lock that it needs."""
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await asyncio.sleep(RETRY_DELAY)
        try:
            await schema.apply(conn, item.name, item.sql, item.checksum, LOCK_TIMEOUT)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            who = "; ".join(await schema.lock_holders(conn)) or "somebody who has just gone"
            if not attempt:
                say(f"{item.name} waits for tables that others hold: {who}")
        else:
            return
    raise LostRace(f"{item.name} needs tables that others hold: {who}; end them and run it again")


def _refuse_missing(found: list[Migration]) -> None:
    if missing := [item.name for item in found if item.applied_at is None]:
        names = ", ".join(missing)
        raise SchemaOutdated(
            f"migrations are missing: {names}", hint=CommandHint("migrate", lead="run")
        )


async def _state(conn: Connection) -> list[Migration]:
    found, newer = await _compare(conn)
    if newer:
        raise SchemaOutdated(f"the database has {newer}, which this version does not know")
    return found


async def _compare(conn: Connection) -> tuple[list[Migration], str | None]:
    """Return what this version knows, and the newest that it does not know, if there is one.

    Raises SchemaUnsupported on a database of before the first release.
    """
    applied = await schema.applied(conn)
    if UNRELEASED in applied:
        raise SchemaUnsupported
    known = available()
    newer = max(applied.keys() - {item.name for item in known}, default=None)
    found = []
    for item in known:
        checksum, at = applied.get(item.name, (None, None))
        if checksum not in (None, item.checksum):
            raise SchemaOutdated(
                f"migration {item.name} was edited after it was applied;"
                " take the edit back, and put the change into a new file"
            )
        found.append(replace(item, applied_at=at))
    return found, newer
