"""Schema migrations.

Numbered SQL files run in one transaction each, under one advisory lock, so that several processes
may start at once. Each file records itself, so that `psql -1 -f` works too, also a second time;
this module adds a checksum and refuses a file that was edited after it was applied.

A migration that waits for a lock blocks all later queries on the table. It gives up after two
seconds and retries, so that workers are blocked only briefly.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from psycopg import errors

from draftsman import resources
from draftsman.errors import CommandHint, LostRace, SchemaOutdated, SchemaUnsupported
from draftsman.store.postgres import schema
from draftsman.store.postgres.database import Connection, translate_errors
from draftsman.store.postgres.direct_connection import connect_direct
from draftsman.store.postgres.session_settings import OF_SESSIONS, PINNED

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to wait for a connection."""
LOCK_TIMEOUT: Final = 2.0
"""Seconds that a migration waits for a lock."""
RETRY_DELAY: Final = 1.0
"""Seconds between two attempts, in which other sessions can continue."""
MAX_ATTEMPTS: Final = 100
"""Attempts per file, five minutes in all."""
UNRELEASED: Final = "0001_core"
"""First migration of the versions before the first release, which numbered them otherwise."""


PSQL_COMMAND: Final = re.compile(r"^(?:SELECT .* \\gset|\\[a-z].*)\n", re.MULTILINE)
"""A command of psql in a migration file, which stops psql if the file is already applied."""
ROLES_HINT: Final = (
    "this role may not create the group roles for workers, bots, people and readers; have a DBA"
    " run: {}then run: draftsman migrate --grant"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration file; `applied_at` is None for a pending migration."""

    name: str
    sql: str
    applied_at: datetime | None = None

    @property
    def statements(self) -> str:
        """The file without the commands of psql."""
        return PSQL_COMMAND.sub("", self.sql)

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def available() -> list[Migration]:
    """Return the migrations of this version, in order."""
    return [Migration(name, sql) for name, sql in resources.migrations()]


async def applied_migrations(url: str) -> list[Migration]:
    """Return every migration with the time it was applied.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    async with _connect(url) as conn:
        return await _state(conn)


async def migrate(url: str, report: Callable[[str], None] = lambda text: None) -> list[str]:
    """Apply the pending migrations; return their names.

    `report` gets a line about each lock that a migration waits for. Raises as `applied_migrations`
    does, and LostRace when other sessions hold a required lock for five minutes.
    """
    async with _connect(url) as conn:
        await schema.lock(conn)
        pending = [item for item in await _state(conn) if item.applied_at is None]
        for item in pending:
            # a process that dies between the last file and the grants would leave roles without
            # rights, which no later migration would grant
            statements = await _apply(conn, item, report, grant=item is pending[-1])
            if statements:
                report(ROLES_HINT.format(statements))
        return [item.name for item in pending]


async def migrate_pending(url: str, conn: Connection) -> None:
    """Migrate the database at `url`, unless a connection to it shows that nothing is pending.

    The migration has a connection of its own, which holds the lock until it is closed.
    """
    if any(item.applied_at is None for item in await _state(conn)):
        await migrate(url)


async def grant(url: str) -> str:
    """Grant the group roles their privileges; return statements that a DBA has to run first."""
    async with _connect(url) as conn:
        await schema.lock(conn)
        await _compare(conn)
        return await schema.grant_roles(conn)


async def check(url: str) -> None:
    """Raise SchemaOutdated, naming the pending migrations, unless all were applied."""
    _refuse_pending(await applied_migrations(url))


async def check_compatible(url: str) -> str | None:
    """Raise SchemaOutdated if this version cannot use the database; return its newer migration.

    Each version works with the schema of the next, so that workers of both can run side by side.
    """
    async with _connect(url) as conn:
        migrations, newer = await _compare(conn)
    _refuse_pending(migrations)
    return newer


async def start_epoch(url: str) -> int:
    """Start a new epoch of the events after the restore of a dump; return its number."""
    await check(url)
    async with _connect(url) as conn:
        return await schema.new_epoch(conn)


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[Connection]:
    with translate_errors():
        settings = {**PINNED, **OF_SESSIONS, "statement_timeout": "0"}
        conn = await connect_direct(url, settings, connect_timeout=CONNECT_TIMEOUT)
        async with conn:
            _check_encoding(conn)
            yield conn


def _check_encoding(conn: Connection) -> None:
    """Raise SchemaOutdated unless the database stores every character."""
    encoding = conn.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        name = conn.info.dbname
        raise SchemaOutdated(
            f"the encoding of database {name} is {encoding}, which cannot store every text; create"
            f" another: CREATE DATABASE {name}_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
        )


async def _apply(
    conn: Connection, item: Migration, report: Callable[[str], None], *, grant: bool
) -> str:
    """Run a file; retry while other sessions hold a lock that it needs.

    `grant` also grants the rights of the group roles; returns the SQL that a DBA must run first.
    """
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await asyncio.sleep(RETRY_DELAY)
        try:
            return await schema.apply(
                conn, item.name, item.statements, item.checksum, LOCK_TIMEOUT, grant=grant
            )
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            holders = "; ".join(await schema.lock_holders(conn)) or "a session that has just ended"
            if not attempt:
                report(f"{item.name} is waiting for a table lock held by: {holders}")
    raise LostRace(
        f"{item.name} could not lock its tables; held by: {holders}; end these sessions and retry"
    )


def _refuse_pending(migrations: list[Migration]) -> None:
    if pending := [item.name for item in migrations if item.applied_at is None]:
        names = ", ".join(pending)
        raise SchemaOutdated(
            f"pending migrations: {names}", hint=CommandHint("migrate", lead="run")
        )


async def _state(conn: Connection) -> list[Migration]:
    migrations, newer = await _compare(conn)
    if newer:
        raise SchemaOutdated(
            f"the database is newer than this version (it has {newer}); upgrade draftsman"
        )
    return migrations


async def _compare(conn: Connection) -> tuple[list[Migration], str | None]:
    """Return the migrations of this version, and the newest unknown migration if there is any.

    Raises SchemaUnsupported on a database of before the first release.
    """
    applied = await schema.applied(conn)
    if UNRELEASED in applied:
        raise SchemaUnsupported
    known = available()
    newer = max(applied.keys() - {item.name for item in known}, default=None)
    migrations = []
    for item in known:
        checksum, at = applied.get(item.name, (None, None))
        if checksum not in (None, item.checksum):
            raise SchemaOutdated(
                f"migration {item.name} was edited after it was applied;"
                " revert the edit and put the change into a new file"
            )
        migrations.append(replace(item, applied_at=at))
    return migrations, newer
