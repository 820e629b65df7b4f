"""Schema migrations.

Numbered SQL files, each in its own transaction, under an advisory lock, so that concurrent
processes can start at once. Each file records itself, so that `psql -1 -f` works too; here a
checksum is added, and a file that was edited after it was applied is refused.

A file that cannot get a lock within two seconds is retried: queries queue behind a waiting
migration, and workers must not be blocked for long.
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
"""Seconds that a migration waits for a lock, while queries queue behind it."""
RETRY_DELAY: Final = 1.0
"""Seconds between two attempts, in which the queued queries run."""
MAX_ATTEMPTS: Final = 100
"""Maximum attempts for a file: five minutes in all."""
UNRELEASED: Final = "0001_core"
"""First migration of the versions before the first release, which had another numbering."""


ROLES_HINT: Final = (
    "this role may not create the group roles of workers, bots, people and readers; ask a database"
    " administrator to run: {}then run: draftsman migrate --grant"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration file, and when it was applied (None: not yet)."""

    name: str
    sql: str
    applied_at: datetime | None = None

    @property
    def checksum(self) -> str:
        """The SHA-256 of the file, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def available() -> list[Migration]:
    """Return the migrations of this version, in order."""
    return [Migration(name, sql) for name, sql in resources.migrations()]


async def applied_migrations(url: str) -> list[Migration]:
    """Return all migrations with their time of application.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    async with _connect(url) as conn:
        return await _read_migrations(conn)


async def migrate(url: str, report: Callable[[str], None] = lambda text: None) -> list[str]:
    """Apply the missing migrations; return their names.

    `report` receives a line when a file waits for a lock. Raises like `applied_migrations`, on a
    file that fails, and LostRace after five minutes without a needed lock.
    """
    async with _connect(url) as conn:
        await schema.lock(conn)
        missing = [item for item in await _read_migrations(conn) if item.applied_at is None]
        for item in missing:
            await _apply(conn, item, report)
        if missing and (statements := await schema.grant_roles(conn)):
            report(ROLES_HINT.format(statements))
        return [item.name for item in missing]


async def grant(url: str) -> str:
    """Grant the rights of the group roles; return the SQL that an administrator must run first."""
    async with _connect(url) as conn:
        await schema.lock(conn)
        await _compare(conn)
        return await schema.grant_roles(conn)


async def check(url: str) -> None:
    """Raise SchemaOutdated, naming the missing migrations, unless all are applied."""
    _refuse_missing(await applied_migrations(url))


async def check_compatible(url: str) -> str | None:
    """Raise SchemaOutdated unless this version can use the schema; return a newer migration.

    Each version works with the schema of the next version, so that workers of both can run side by
    side.
    """
    async with _connect(url) as conn:
        migrations, newer = await _compare(conn)
    _refuse_missing(migrations)
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


async def _apply(conn: Connection, item: Migration, report: Callable[[str], None]) -> None:
    """Apply a file; retry while other sessions hold a needed lock."""
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await asyncio.sleep(RETRY_DELAY)
        try:
            await schema.apply(conn, item.name, item.sql, item.checksum, LOCK_TIMEOUT)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            holders = "; ".join(await schema.lock_holders(conn)) or "a session that has ended"
            if not attempt:
                report(f"{item.name} is waiting for locks of other sessions: {holders}")
        else:
            return
    raise LostRace(
        f"{item.name} needs locks of other sessions: {holders}; end them and run migrate again"
    )


def _refuse_missing(migrations: list[Migration]) -> None:
    if missing := [item.name for item in migrations if item.applied_at is None]:
        names = ", ".join(missing)
        raise SchemaOutdated(
            f"missing migrations: {names}", hint=CommandHint("migrate", lead="run")
        )


async def _read_migrations(conn: Connection) -> list[Migration]:
    migrations, newer = await _compare(conn)
    if newer:
        raise SchemaOutdated(
            f"the database has migration {newer} of a newer version; upgrade draftsman"
        )
    return migrations


async def _compare(conn: Connection) -> tuple[list[Migration], str | None]:
    """Return the migrations of this version, and the newest migration of a newer version.

    Raises SchemaUnsupported on a database of before the first release.
    """
    applied = await schema.applied(conn)
    if UNRELEASED in applied:
        raise SchemaUnsupported
    own = available()
    newer = max(applied.keys() - {item.name for item in own}, default=None)
    migrations = []
    for item in own:
        checksum, applied_at = applied.get(item.name, (None, None))
        if checksum not in (None, item.checksum):
            raise SchemaOutdated(
                f"migration {item.name} was edited after it was applied;"
                " revert the edit, and put the change into a new file"
            )
        migrations.append(replace(item, applied_at=applied_at))
    return migrations, newer
