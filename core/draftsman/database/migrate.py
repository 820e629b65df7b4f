"""Schema migrations: numbered files with tables, and the current text of all functions.

A numbered file is applied once, and never changes after its release. The files of `functions/` have
the current text of functions, views, triggers and privileges. Each is applied whole when its text
has changed, or a numbered file has dropped some of it; objects that no file defines any more are
dropped. A file locks the tables of its triggers and its views, so the others are left alone. A
migration is a single transaction under an advisory lock, so that several processes may start at
once. The package of a channel has files of its own, which never drop what belongs to another; those
of a package that is absent here are left alone.

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
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import Error, errors

from draftsman.database import schema
from draftsman.database.database import Connection, to_domain_error, translate_errors
from draftsman.database.direct_connection import connect_direct
from draftsman.database.migration_files import (
    Migration,
    available,
    channels_of,
    core_files,
    sources,
)
from draftsman.database.migration_state import (
    SchemaState,
    compatible_state,
    known_state,
    refuse_pending,
    state_of,
)
from draftsman.database.session_settings import OF_SESSIONS, PINNED
from draftsman.errors import DraftsmanError, LostRace, SchemaOutdated

_log = logging.getLogger(__name__)
CONNECT_TIMEOUT: Final = 10.0
"""Seconds to wait for a connection."""
LOCK_TIMEOUT: Final = 2.0
"""Seconds that a migration waits for a lock."""
RETRY_DELAY: Final = 1.0
"""Seconds between two attempts, in which other sessions can continue."""
MAX_ATTEMPTS: Final = 100
"""Attempts per file, five minutes in all."""
ROLES_HINT: Final = (
    "this role may not create the group roles for workers, bots, people and readers; have a DBA"
    " run: {}then run: draftsman migrate --grant"
)


@dataclass(frozen=True, slots=True)
class RecordedPackage:
    """The package of a channel that was migrated here."""

    channel: str
    package: str
    version: str
    """The version that migrated last."""
    installed: str | None
    """The version of the package here; None without it."""


async def applied_migrations(url: str) -> list[Migration]:
    """Return every migration with the time it was applied.

    Raises DatabaseUnreachable, and SchemaOutdated when an applied file was edited or the database
    is newer than this version.
    """
    return (await schema_state(url)).migrations


async def schema_state(url: str) -> SchemaState:
    """Return the files as `applied_migrations` does, and the problems of packages."""
    async with _connect(url) as conn:
        return await known_state(conn)


async def packages(url: str) -> list[RecordedPackage]:
    """Return the packages that were migrated here, by channel, also those that are absent here."""
    versions = {source.channel: source.version for source in sources()}
    async with _connect(url) as conn:
        return [
            RecordedPackage(channel, package, version, versions.get(channel))
            for channel, package, version in await schema.packages(conn)
        ]


def _warn(text: str) -> None:
    _log.warning("%s", text)


async def migrate(url: str, report: Callable[[str], None] = _warn) -> list[str]:
    """Apply the pending files; return their names.

    Those of draftsman and its channels are a transaction, and those of each other package. A
    package that fails is left out. `report` gets a line about it, about a lock that a file waits
    for, and about each dropped object. Raises as `applied_migrations` does, and LostRace when other
    sessions hold a required lock for five minutes.
    """
    async with _connect(url) as conn:
        await schema.lock(conn)
        state = await known_state(conn)
        applied = list[str]()
        hint = ""
        for group in _groups(state.migrations):
            first = group[0]
            if not first.is_own and first.channel in {*state.problems, *state.newer}:
                continue
            try:
                names, missing = await _apply(conn, group, report)
            except (Error, DraftsmanError) as error:
                if first.is_own:
                    raise
                problem = str(to_domain_error(error)).partition("\n")[0]
                where = "".join(f" in {file}" for file in getattr(error, "__notes__", ()))
                text = f"{first.source} cannot be migrated: {problem}{where}"
                state.problems[first.channel] = text
            else:
                applied += names
                hint = missing or hint
        await schema.record_versions(conn, list(sources()))
        for text in state.warnings:
            report(text)
        if applied and hint:
            report(ROLES_HINT.format(hint))
        return applied


def _groups(files: Sequence[Migration]) -> list[list[Migration]]:
    """Return the files by transaction: those of draftsman, then those of each other package."""
    groups = dict[str, list[Migration]]()
    for item in files:
        groups.setdefault("" if item.is_own else item.channel, []).append(item)
    return list(groups.values())


async def script(url: str) -> list[tuple[str, str]]:
    """Return (name, SQL) of the pending files for psql, and of the statements after them."""
    state = await schema_state(url)
    pending = state.pending
    if not pending:
        return []
    if not pending[0].has_functions:  # which may drop parts of any file
        files = state.migrations
        pending = [item for item in files if item.applied_at is None or item.has_functions]
    records = [
        (item.recorded_name, item.checksum, item.objects) for item in pending if item.has_functions
    ]
    finish = schema.finishing_script(
        records, _defined(state.migrations), channels_of(state.migrations), list(sources())
    )
    return [*((item.name, item.statements) for item in pending), ("privileges", finish)]


async def migrate_pending(url: str, conn: Connection, *, read_only: bool = False) -> None:
    """Migrate the database at `url`, unless a connection to it shows that nothing is pending.

    A command that only reads waits for the files of draftsman alone. The migration has a connection
    of its own, which holds the lock until it is closed.
    """
    if (await known_state(conn, core_files() if read_only else None)).pending:
        await migrate(url)


async def grant(url: str) -> str:
    """Grant the group roles their privileges; return statements that a DBA has to run first."""
    async with _connect(url) as conn:
        await schema.lock(conn)
        await state_of(conn)
        return await schema.grant_roles(conn)


async def reach(url: str) -> None:
    """Connect once, to see whether the database can be used; its schema does not matter."""
    async with _connect(url):
        pass


async def check(url: str) -> None:
    """Raise SchemaOutdated, with the names, for pending migrations or problems of packages."""
    state = await schema_state(url)
    refuse_pending(state.pending)
    if state.warnings:
        raise SchemaOutdated("; ".join(state.warnings))


async def check_compatible(url: str) -> str | None:
    """Raise SchemaOutdated if this version cannot use the database; return its newer migration.

    Each version works with the schema of the next, so that workers of both can run side by side.
    The packages of others do not matter.
    """
    async with _connect(url) as conn:
        return (await compatible_state(conn)).own_newer


async def warn_of_schema(url: str) -> frozenset[str]:
    """Log that the database is newer than this version; raise SchemaOutdated if it is too old.

    Returns the channels whose packages are not migrated, which is logged.
    """
    async with _connect(url) as conn:
        state = await compatible_state(conn)
    if newer := state.own_newer:
        _log.warning(
            "the database schema is newer than this version (it has %s); continuing", newer
        )
    for text in state.warnings:
        _log.warning("%s", text)
    for item in state.pending:
        _log.error("%s is not migrated (%s); run: draftsman migrate", item.source, item.name)
    return frozenset(item.channel for item in state.pending) | state.problems.keys()


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
    conn: Connection, group: list[Migration], report: Callable[[str], None]
) -> tuple[list[str], str]:
    """Run the pending files of a group; retry while other sessions hold a lock that a file needs.

    Returns their names, and the SQL that a DBA must run first for the rights of the group roles.
    """
    functions = {item.recorded_name: item for item in group if item.has_functions}
    pending = [item for item in group if item.applied_at is None]
    names = [item.name for item in pending]
    lost = await schema.lost_functions(conn, list(functions)) if not pending else set[str]()
    if not pending and not lost:
        return [], ""
    waiting = names[0] if names else next(iter(lost))
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            await asyncio.sleep(RETRY_DELAY)
        try:
            async with conn.transaction():
                await schema.limit_lock_waits(conn, LOCK_TIMEOUT)
                for item in (item for item in pending if not item.has_functions):
                    waiting = item.name
                    await schema.run_file(conn, item.statements)
                    await schema.record(conn, item.recorded_name, item.checksum)
                lost = await schema.lost_functions(conn, list(functions))
                changed = [
                    item
                    for name, item in functions.items()
                    if item.applied_at is None or name in lost
                ]
                for item in changed:
                    waiting = item.name
                    await schema.run_file(conn, item.statements)
                dropped = await _finish(conn, changed, group)
                statements = await schema.grant_roles(conn)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            holders = "; ".join(await schema.lock_holders(conn)) or "a session that has just ended"
            if not attempt:
                report(f"{waiting} is waiting for a table lock held by: {holders}")
        except Error as error:
            error.add_note(waiting)
            raise
        else:
            for statement in dropped:
                report(statement)
            return names, statements
    raise LostRace(
        f"{waiting} could not lock its tables; held by: {holders}; end these sessions and retry"
    )


async def _finish(conn: Connection, applied: list[Migration], group: list[Migration]) -> list[str]:
    """Drop the objects that no file defines any more, and record the files; return the drops."""
    if not applied:
        return []
    names = [item.recorded_name for item in group if item.has_functions]
    dropped = await schema.drop_vanished(conn, _defined(available()), names, channels_of(group))
    for item in applied:
        await schema.record_functions(conn, item.recorded_name, item.checksum, item.objects)
    return dropped


def _defined(files: Sequence[Migration]) -> list[str]:
    """Return the objects that the files of functions define."""
    return [name for item in files if item.has_functions for name in item.objects]
