"""Schema migrations: numbered files with tables, and the current text of all functions.

A numbered file is applied once, and never changes after its release. The files of `functions/` have
the current text of functions, views, triggers and privileges. Each is applied whole when its text
has changed, or a numbered file has dropped some of it; objects that no file defines any more are
dropped. A file locks the tables of its triggers and its views, so the others are left alone. A
migration is a single transaction under an advisory lock, so that several processes may start at
once.

Each file records itself, so that `psql -1 -f` works too; this module adds checksums and the objects
that a file of functions defines, and refuses a numbered file that was edited after it was applied.

The numbers are the version of the schema: a release that changes a function adds a numbered file,
even if that only records itself. A program that does not know the newest number never replaces
functions. It may work with them: a release keeps each function that the previous release calls,
with its parameters and its result. A changed signature is therefore a new function, and the old
function leaves its file with the next release.

A migration that waits for a lock blocks all later queries on the table. It gives up after two
seconds and retries, so that workers are blocked only briefly.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from psycopg import errors

from draftsman import resources
from draftsman.database import schema
from draftsman.database.database import Connection, translate_errors
from draftsman.database.direct_connection import connect_direct
from draftsman.database.session_settings import OF_SESSIONS, PINNED
from draftsman.errors import CommandHint, LostRace, SchemaOutdated

_log = logging.getLogger(__name__)
CONNECT_TIMEOUT: Final = 10.0
"""Seconds to wait for a connection."""
LOCK_TIMEOUT: Final = 2.0
"""Seconds that a migration waits for a lock."""
RETRY_DELAY: Final = 1.0
"""Seconds between two attempts, in which other sessions can continue."""
MAX_ATTEMPTS: Final = 100
"""Attempts per file, five minutes in all."""
FUNCTIONS: Final = "functions/"
"""How the names of files of functions begin."""

PSQL_COMMAND: Final = re.compile(r"^(?:SELECT .* \\gset|\\[a-z].*)\n", re.MULTILINE)
"""A command of psql in a migration file, which stops psql if the file is already applied."""
DEFINITION: Final = re.compile(
    r"^CREATE (?:OR REPLACE )?(?:CONSTRAINT )?"
    r"(?:(?P<function>FUNCTION draftsman\.\w+)\((?P<parameters>[^)]*)\)"
    r"|(?P<view>VIEW draftsman\.\w+)"
    r"|(?P<rule>(?:TRIGGER|POLICY) \w+)\s[^;]*?\s?ON (?P<table>draftsman\.\w+))",
    re.MULTILINE,
)
"""The head of a statement that defines an object in a file of functions."""
ROLES_HINT: Final = (
    "this role may not create the group roles for workers, bots, people and readers; have a DBA"
    " run: {}then run: draftsman migrate --grant"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A file; `applied_at` is None if it is pending.

    The name of a file of functions begins with `functions/`.
    """

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

    @property
    def has_functions(self) -> bool:
        """Whether the file has the current text of functions, instead of a number."""
        return self.name.startswith(FUNCTIONS)

    @property
    def objects(self) -> list[str]:
        """The objects that a file of functions defines, as `DROP` names them."""
        return [_object(match) for match in DEFINITION.finditer(self.sql)]


def _object(match: re.Match[str]) -> str:
    if view := match["view"]:
        return view
    if rule := match["rule"]:
        return f"{rule} ON {match['table']}"
    parameters = re.sub(r" DEFAULT [^,]*", "", " ".join(match["parameters"].split()))
    types = [part.strip().partition(" ")[2] for part in parameters.split(",") if part]
    return f"{match['function']}({', '.join(types)})"


def available() -> list[Migration]:
    """Return the files of this version, in order: the numbered ones, then those of functions."""
    files = [*resources.migrations(), *resources.functions()]
    return [Migration(name, sql) for name, sql in files]


async def applied_migrations(url: str) -> list[Migration]:
    """Return every migration with the time it was applied.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    async with _connect(url) as conn:
        return await _state(conn)


async def migrate(url: str, report: Callable[[str], None] = lambda text: None) -> list[str]:
    """Apply the pending files in one transaction; return their names.

    `report` gets a line about a lock that a file waits for, and about each dropped object. Raises
    as `applied_migrations` does, and LostRace when other sessions hold a required lock for five
    minutes.
    """
    async with _connect(url) as conn:
        await schema.lock(conn)
        pending = [item for item in await _state(conn) if item.applied_at is None]
        if pending and (statements := await _apply(conn, pending, report)):
            report(ROLES_HINT.format(statements))
        return [item.name for item in pending]


async def script(url: str) -> list[tuple[str, str]]:
    """Return (name, SQL) of the pending files for psql, and of the statements after them."""
    state = await applied_migrations(url)
    pending = [item for item in state if item.applied_at is None]
    if not pending:
        return []
    if not pending[0].has_functions:  # which may drop parts of any file
        pending = [item for item in state if item.applied_at is None or item.has_functions]
    files = [(item.name, item.statements) for item in pending]
    records = [
        (item.name.removeprefix(FUNCTIONS), item.checksum, item.objects)
        for item in pending
        if item.has_functions
    ]
    return [*files, ("privileges", schema.finishing_script(records, _defined()))]


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


async def warn_if_newer(url: str) -> None:
    """Log that the database is newer than this version; raise SchemaOutdated if it is too old."""
    if newer := await check_compatible(url):
        _log.warning(
            "the database schema is newer than this version (it has %s); continuing", newer
        )


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


async def _apply(conn: Connection, pending: list[Migration], report: Callable[[str], None]) -> str:
    """Run the files; retry while other sessions hold a lock that a file needs.

    Returns the SQL that a DBA must run first for the rights of the group roles.
    """
    waiting = pending[0].name
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await asyncio.sleep(RETRY_DELAY)
        try:
            async with conn.transaction():
                await schema.limit_lock_waits(conn, LOCK_TIMEOUT)
                for item in (item for item in pending if not item.has_functions):
                    waiting = item.name
                    await schema.run_file(conn, item.statements)
                    await schema.record(conn, item.name, item.checksum)
                functions = await _with_lost(conn, pending)
                for item in functions:
                    waiting = item.name
                    await schema.run_file(conn, item.statements)
                dropped = await _finish(conn, functions)
                statements = await schema.grant_roles(conn)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            holders = "; ".join(await schema.lock_holders(conn)) or "a session that has just ended"
            if not attempt:
                report(f"{waiting} is waiting for a table lock held by: {holders}")
        else:
            for statement in dropped:
                report(statement)
            return statements
    raise LostRace(
        f"{waiting} could not lock its tables; held by: {holders}; end these sessions and retry"
    )


async def _with_lost(conn: Connection, pending: list[Migration]) -> list[Migration]:
    """Return the pending files of functions, and those that a numbered file dropped parts of."""
    files = [item for item in available() if item.has_functions]
    by_name = {item.name.removeprefix(FUNCTIONS): item for item in files}
    changed = {item.name for item in pending}
    lost = await schema.lost_functions(conn, list(by_name))
    return [item for name, item in by_name.items() if item.name in changed or name in lost]


async def _finish(conn: Connection, applied: list[Migration]) -> list[str]:
    """Drop the objects that no file defines any more, and record the files; return the drops."""
    if not applied:
        return []
    names = [name.removeprefix(FUNCTIONS) for name, _ in resources.functions()]
    dropped = await schema.drop_vanished(conn, _defined(), names)
    for item in applied:
        name = item.name.removeprefix(FUNCTIONS)
        await schema.record_functions(conn, name, item.checksum, item.objects)
    return dropped


def _defined() -> list[str]:
    """Return the objects that the files of functions define."""
    return [name for item in available() if item.has_functions for name in item.objects]


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
    """Return the files of this version, and the newest unknown number if there is any.

    A file of functions is pending if its text has changed. Without a checksum, psql applied it: it
    is pending unless that was after the newest number. A newer database has the functions of its
    version, and none is pending.
    """
    applied = await schema.applied(conn)
    functions = await schema.applied_functions(conn)
    files = available()
    newer = max(applied.keys() - {item.name for item in files}, default=None)
    newest = max((at for _, at in applied.values()), default=None)
    numbered_pending = any(not i.has_functions and i.name not in applied for i in files)
    migrations = []
    for item in files:
        if not item.has_functions:
            checksum, at = applied.get(item.name, (None, None))
            if checksum not in (None, item.checksum):
                raise SchemaOutdated(
                    f"migration {item.name} was edited after it was applied;"
                    " revert the edit and put the change into a new file"
                )
        else:
            checksum, at = functions.get(item.name, (None, None))
            by_hand = checksum is None and at is not None and newest is not None and at >= newest
            if newer:
                at = at or newest
            elif not (checksum == item.checksum or (by_hand and not numbered_pending)):
                at = None
        migrations.append(replace(item, applied_at=at))
    return migrations, newer
