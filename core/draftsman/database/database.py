"""Database connections, transactions and translation of PostgreSQL errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, LiteralString, ParamSpec, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.rows import AsyncRowFactory, dict_row, kwargs_row, scalar_row, tuple_row
from psycopg.types.enum import EnumInfo, register_enum

from draftsman.database.connection_state import (
    cancellations,
    is_disconnected,
    is_read_only,
)
from draftsman.database.database_connection import (
    CONFLICTS,
    DatabaseConnection,
    TransactionConflict,
    retry_conflicts,
)
from draftsman.database.direct_connection import (
    connect,
    connect_direct,
    has_start_up_options,
    refuses_options,
)
from draftsman.database.named_queries import VISIBLE_REPOS, load
from draftsman.database.pooler_connection import PoolerConnection
from draftsman.database.sentences import refusal, with_sentences
from draftsman.database.session_settings import (
    INDEX_SCANS,
    OF_SESSIONS,
    PINNED,
    conninfo,
    milliseconds,
    reply_margin,
)
from draftsman.errors import (
    CommandHint,
    DatabaseUnreachable,
    DraftsmanError,
    LostRace,
    Refused,
    SchemaOutdated,
    UsageError,
)
from draftsman.metrics import Counter, Totals
from draftsman.text import humanize

if TYPE_CHECKING:
    from draftsman.database.connection_pool import ConnectionPool
    from draftsman.settings.database import DatabaseSettings

_Q = load("draftsman.database.schema")
T = TypeVar("T")
P = ParamSpec("P")
DATABASE_ERRORS: Final = Totals(
    Counter(
        "database_errors_total",
        "Errors of the database in this process: unreachable, timeout, conflict (that repetitions"
        " did not resolve), schema or other.",
        ("kind",),
    )
)
SHORTEST_TIMEOUT: Final = 1.0
"""Seconds that any statement may take, however short a lease is."""
Connection = AsyncConnection[Any]
Params = Mapping[str, Any]
Enums = Mapping[str, type[StrEnum]]
"""Enums by the name of their type in the database."""

DATA_EXCEPTION: Final = errors.DataException.sqlstate
_SCHEMA_ERRORS = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.UndefinedObject,
    errors.InvalidSchemaName,
)
_PASSWORD_FILE: Final = re.compile(r'password retrieved from file "(.+)"')
"""Addition of libpq to the server's error message."""


class Database:
    """Autocommit connections to a database.

    Without `pooled`, for commands that run a few queries one after the other, the first connection
    serves all of them; a pool is opened only if they overlap, or after a lost connection. Values of
    `enums` are read as their members, and those of other enums as texts.
    `session_url` leads to the server itself if `url` is that of a transaction pooler: sessions that
    listen, hold a lock or prepare their statements use it.
    """

    def __init__(
        self,
        url: str,
        settings: DatabaseSettings,
        *,
        enums: Enums,
        session_url: str | None = None,
        read_only: bool = False,
        pooled: bool = True,
    ) -> None:
        self.url = url
        self.session_url = session_url or url
        self.behind_pooler = False
        """Whether `url` leads to a transaction pooler; known after `open`."""
        self._settings = settings
        self._enums = enums
        self._read_only = read_only
        self._pooled = pooled
        self._adapters = AdaptersMap(psycopg.adapters)
        self._is_open = False
        self._first: Connection | None = None
        self._pool: ConnectionPool | None = None
        self._pool_lock = asyncio.Lock()
        self._sessions: list[DedicatedSession] = []

    async def open(self, prepare: Callable[[Connection], Awaitable[None]] | None = None) -> None:
        """Connect; raises DatabaseUnreachable or SchemaOutdated at once.

        `prepare` gets the first connection before it is used for anything else.
        """
        with translate_errors():
            conn = await self._connect_first()
            try:
                if prepare is not None:
                    await prepare(conn)
                infos = await _load_enums(conn)
                _register_enums(infos, self._enums, self._adapters)
                if not self._pooled:
                    _register_enums(infos, self._enums, conn.adapters)
                    self._first = conn
            finally:
                if self._first is not conn:
                    await conn.close()
            if self._pooled:
                await self._open_pool(self._settings.connect_timeout)
        self._is_open = True

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._is_open = False
        for session in self._sessions:
            await session.close()
        if (first := self._first) is not None:
            self._first = None
            await first.close()
        async with self._pool_lock:
            pool = self._pool
            self._pool = None
            if pool is not None:
                await pool.close()

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend an autocommit connection.

        Raises DatabaseUnreachable when none is free within `wait` seconds (None: as configured).
        """
        if not self._is_open:
            raise DatabaseUnreachable("the database is not open")
        with translate_errors(conflicts=True):
            if (first := await self._take_first()) is not None:
                try:
                    yield first
                finally:
                    await self._return_first(first)
            else:
                timeout = self._settings.connect_timeout if wait is None else wait
                pool = self._pool or await self._open_pool(timeout)
                async with pool.connection(wait) as conn:
                    yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection inside a transaction."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Lend a connection inside a transaction all of whose statements read the same state."""
        async with self.connection() as conn:
            level = conn.isolation_level
            await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            try:
                async with conn.transaction():
                    yield conn
            finally:
                if conn.info.transaction_status is TransactionStatus.IDLE:  # else it is discarded
                    await conn.set_isolation_level(level)

    async def run_transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in a transaction; retry after a deadlock or a serialization failure."""
        return await retry_conflicts(lambda: self._attempt_transaction(work))

    async def dedicated_connection(
        self, *, pinned: bool = False, lease: float | None = None
    ) -> Connection:
        """Open a connection outside the pool, which the caller closes; `pinned`: fixed plans.

        With `lease`, in seconds, a statement ends in time for another attempt within it.
        Raises ConfigError if its URL leads to a transaction pooler.
        """
        timeout = self._settings.statement_timeout
        if lease is not None:
            timeout = min(timeout, max(SHORTEST_TIMEOUT, lease / 4))
        settings = {**self._pinned_settings(timeout), **(INDEX_SCANS if pinned else {})}
        with translate_errors():
            conn = await connect_direct(
                self.session_url,
                settings,
                connect_timeout=self._settings.connect_timeout,
                pinned=pinned,
                context=self._adapters,
            )
        conn.reply_timeout = timeout + reply_margin(timeout)
        if pinned:
            conn.prepare_threshold = 0
        return conn

    def dedicated_session(
        self, *, pinned: bool = True, lease: float | None = None
    ) -> DedicatedSession:
        """Return a session outside the pool; `pinned` if it repeats a single statement.

        With `lease`, in seconds, a statement ends in time for another attempt within it.
        """
        self._sessions.append(DedicatedSession(self, pinned=pinned, lease=lease))
        return self._sessions[-1]

    def seen_by(self, visible_repos: Callable[[], Sequence[str] | None]) -> Database:
        """Return the database of a viewer: connections that it lends know the visible repositories.

        They are asked for whenever a connection is lent; None: all.
        """
        return _ViewedDatabase(self, visible_repos)

    def is_left_over(self, conn: Connection) -> bool:
        """Return whether a session is to be replaced, because it began on a read-only server."""
        if self._read_only or isinstance(conn, PoolerConnection):
            return False
        return is_read_only(conn)

    async def _attempt_transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.transaction() as conn:
            return await work(conn)

    def _pinned_settings(self, statement_timeout: float) -> dict[str, str]:
        settings = {**PINNED, **OF_SESSIONS, "statement_timeout": milliseconds(statement_timeout)}
        if self._read_only:
            settings["default_transaction_read_only"] = "on"
        return settings

    async def _connect_first(self) -> DatabaseConnection:
        """Open a connection, and find out whether the URL leads to a transaction pooler."""
        connect_timeout = self._settings.connect_timeout
        settings = self._pinned_settings(self._settings.statement_timeout)
        try:
            conn = await connect(
                conninfo(self.url, settings, connect_timeout), context=self._adapters
            )
            if await has_start_up_options(conn):
                await self._configure(conn)
                return conn
            await conn.close()
        except psycopg.OperationalError as error:
            if not refuses_options(error):
                raise
        self.behind_pooler = True
        conn = await connect(
            conninfo(self.url, {}, connect_timeout), PoolerConnection, context=self._adapters
        )
        await self._configure(conn)
        return conn

    async def _take_first(self) -> Connection | None:
        """Take the first connection if it is free and connected."""
        conn = self._first
        self._first = None
        if conn is not None and is_disconnected(conn):
            await conn.close()
            return None
        return conn

    async def _return_first(self, conn: Connection) -> None:
        is_idle = conn.info.transaction_status is TransactionStatus.IDLE
        is_first = self._first is None  # not lent while the database was closed and opened again
        if self._is_open and is_first and is_idle and not self.is_left_over(conn):
            self._first = conn
        else:
            await conn.close()

    async def _open_pool(self, timeout: float) -> ConnectionPool:
        """Return the pool; open it on first use."""
        from draftsman.database.connection_pool import ConnectionPool

        async with self._pool_lock:
            if self._pool is None:
                if self.behind_pooler:
                    kind: type[DatabaseConnection] = PoolerConnection
                    settings: dict[str, str] = {}
                else:
                    from draftsman.database.pinned_connection import PinnedConnection

                    kind = PinnedConnection
                    settings = self._pinned_settings(self._settings.statement_timeout)
                pool = ConnectionPool(
                    conninfo(self.url, settings, self._settings.connect_timeout),
                    self._settings,
                    kind,
                    context=self._adapters,
                    configure=self._configure,
                    is_left_over=self.is_left_over,
                )
                await pool.open(timeout)
                self._pool = pool
            return self._pool

    async def _configure(self, conn: DatabaseConnection) -> None:
        timeout = self._settings.statement_timeout
        conn.reply_timeout = timeout + reply_margin(timeout)
        if isinstance(conn, PoolerConnection):
            settings = {**PINNED, "statement_timeout": milliseconds(timeout)}
            await conn.begin_with(settings, read_only=self._read_only)


class _ViewedDatabase(Database):
    """The connections of a database, lent to a viewer."""

    def __init__(
        self, database: Database, visible_repos: Callable[[], Sequence[str] | None]
    ) -> None:
        self._database = database
        self._visible_repos = visible_repos

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend an autocommit connection."""
        repos = self._visible_repos()
        async with self._database.connection(wait) as conn:
            lent = cast(DatabaseConnection, conn)
            lent.visible_repos = None if repos is None else list(repos)
            try:
                yield conn
            finally:
                lent.visible_repos = None


def on_connection(
    query: Callable[Concatenate[Connection, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the method of a service that runs `query` on a connection of its database, `_db`."""

    @wraps(query)
    async def method(service: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with service._db.connection() as conn:
            return await query(conn, *args, **kwargs)

    return method


class DedicatedSession:
    """A dedicated session that connects on first use and reconnects when disconnected.

    A single caller has it at a time: the check for a disconnection may read another caller's reply.
    Pinned plans are made once, of index scans and nested loops: no statistics, however old or
    wrong, lead to a sequential scan or a sort, and no call pays for planning.
    """

    def __init__(self, db: Database, *, pinned: bool = True, lease: float | None = None) -> None:
        self._db = db
        self._pinned = pinned
        self._lease = lease
        self._conn: Connection | None = None
        self._lent = asyncio.Lock()

    @asynccontextmanager
    async def connection(self, wait: float) -> AsyncIterator[Connection]:
        """Lend the session; raises DatabaseUnreachable if connecting takes over `wait` seconds."""
        async with self._lent:
            with translate_errors(conflicts=True):
                conn = self._conn
                if conn is None or is_disconnected(conn):
                    await self.close()
                    conn = await self._connect(wait)
                    self._conn = conn
                try:
                    yield conn
                finally:
                    if self._db.is_left_over(conn):
                        await self.close()

    async def close(self) -> None:
        """Disconnect; safe to call twice."""
        if self._conn is not None:
            await self._conn.close()
            self._conn = None

    async def _connect(self, wait: float) -> Connection:
        try:
            async with asyncio.timeout(wait):
                return await self._db.dedicated_connection(pinned=self._pinned, lease=self._lease)
        except TimeoutError:
            raise DatabaseUnreachable(f"no connection within {wait:.0f} s") from None


class translate_errors:
    """Translate PostgreSQL errors to draftsman's errors.

    Conflicts of a transaction are kept for the code that can repeat it, which is outside of the
    connection's block: there, with `conflicts`, they become a TransactionConflict.

    A connection that breaks while a statement is being canceled raises its own error instead of the
    cancellation; the cancellation is raised here, so that no caller takes it for an outage.
    """

    def __init__(self, *, conflicts: bool = False) -> None:
        self._conflicts = conflicts

    def __enter__(self) -> None:
        self._before = cancellations()

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if not isinstance(error, psycopg.Error):
            return
        if cancellations() > self._before:
            raise asyncio.CancelledError from error
        if self._conflicts or not isinstance(error, CONFLICTS):
            raise to_domain_error(error) from error


def to_domain_error(error: Exception) -> DraftsmanError:
    """Return draftsman's error for a database error, with its SQLSTATE."""
    translated = _translate(error)
    translated.sqlstate = _sqlstate(error)
    if not isinstance(translated, Refused | LostRace | UsageError):  # what the schema answers
        DATABASE_ERRORS.add(_kind(translated, translated.sqlstate))
    return translated


def _kind(error: DraftsmanError, sqlstate: str | None) -> str:
    """Return the kind of an error of the database, for the metric."""
    if sqlstate == errors.QueryCanceled.sqlstate:
        return "timeout"
    kinds = {
        DatabaseUnreachable: "unreachable",
        TransactionConflict: "conflict",
        SchemaOutdated: "schema",
    }
    return kinds.get(type(error), "other")


def _sqlstate(error: Exception) -> str | None:
    """Return the SQLSTATE of an error; for a value that psycopg cannot send, of a data error."""
    state = getattr(error, "sqlstate", None)
    if state is None and isinstance(error, psycopg.DataError | psycopg.ProgrammingError):
        return DATA_EXCEPTION
    return state


def _translate(error: Exception) -> DraftsmanError:
    text = _text(error)
    if isinstance(error, psycopg.Error) and (translated := _own_error(error, text)) is not None:
        return translated
    if isinstance(error, CONFLICTS):
        return TransactionConflict(f"a conflict with another transaction: {text}; try again")
    if isinstance(error, _SCHEMA_ERRORS):
        return SchemaOutdated(text, hint=CommandHint("migrate", lead="run"))
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return Refused("this session is read-only")
    if isinstance(error, errors.QueryCanceled):
        return DatabaseUnreachable(f"the database query timed out: {text}")
    if isinstance(error, errors.LockNotAvailable):
        return LostRace("a needed lock is held by another session; try again")
    if isinstance(error, errors.InsufficientPrivilege):
        return Refused(f"permission denied for the database role: {text}")
    if isinstance(
        error, errors.ProgramLimitExceeded | errors.OutOfMemory
    ):  # an OperationalError that retries do not resolve
        return DraftsmanError(f"database error: {text}")
    if password_file := _PASSWORD_FILE.search(str(error)):
        return DatabaseUnreachable(
            f"the database rejected the password in {password_file[1]}; correct it, or for the"
            " embedded PostgreSQL delete that file: the next command sets a new password"
        )
    if isinstance(error, psycopg.OperationalError):
        return DatabaseUnreachable(f"the database cannot be reached: {text}")
    if isinstance(error, psycopg.InterfaceError):
        return DatabaseUnreachable(f"the database connection was lost: {text}")
    return DraftsmanError(f"database error: {text}")


def _text(error: Exception) -> str:
    sentence = refusal(error) if isinstance(error, psycopg.Error) else None
    lines = (sentence or str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _own_error(error: psycopg.Error, text: str) -> DraftsmanError | None:
    """Return draftsman's error for an error that its schema raises; None for another."""
    if error.sqlstate in ("DM001", "DM002", "DM003"):
        return LostRace(text)
    if error.sqlstate == "DM004":
        return Refused(text)
    if (error.diag.constraint_name or "").endswith("_sizes"):  # programs check most before
        table = humanize(error.diag.table_name or "a table")
        return UsageError(f"a text for {table} is longer than the database stores; shorten it")
    return None


async def _load_enums(conn: Connection) -> dict[str, EnumInfo]:
    """Return the enums of the schema; raises SchemaOutdated."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_Q["enums"])
        enums = await cursor.fetchall()
    if not enums:
        raise SchemaOutdated(
            "the database has no draftsman schema, or an outdated schema",
            hint=CommandHint("migrate", lead="run"),
        )
    return {enum["name"]: EnumInfo(**enum) for enum in enums}


def _register_enums(infos: Mapping[str, EnumInfo], enums: Enums, adapters: AdaptersMap) -> None:
    for name in infos.keys() & enums.keys():
        texts = {member: member.value for member in enums[name] if member != "VALID"}
        register_enum(infos[name], adapters, enums[name], mapping=texts)


async def fetch_all(
    conn: Connection, query: LiteralString, params: Params | None, row: Callable[..., T]
) -> list[T]:
    """Return all rows as `row`, built by column names."""
    cursor = await _run(conn, kwargs_row(row), query, params)
    return [with_sentences(record) for record in await cursor.fetchall()]


async def fetch_one(
    conn: Connection, query: LiteralString, params: Params | None, row: Callable[..., T]
) -> T | None:
    """Return the first row as `row`, or None."""
    record = await (await _run(conn, kwargs_row(row), query, params)).fetchone()
    return None if record is None else with_sentences(record)


async def fetch_record(
    conn: Connection, query: LiteralString, params: Params | None = None
) -> Mapping[str, Any] | None:
    """Return the first row by the names of its columns, for several calls of `from_record`."""
    return await (await _run(conn, dict_row, query, params)).fetchone()


def from_record(row: type[T], record: Mapping[str, Any]) -> T:
    """Return a `row` of those columns of a record that are its fields."""
    columns = {field.name for field in fields(cast(Any, row))} & record.keys()
    return with_sentences(row(**{name: record[name] for name in columns}))


async def scalar(conn: Connection, query: LiteralString, params: Params | None = None) -> Any:
    """Return the first column of the first row, or None without a row."""
    return await (await _run(conn, scalar_row, query, params)).fetchone()


async def rows(
    conn: Connection, query: LiteralString, params: Params | None = None
) -> Sequence[tuple[Any, ...]]:
    """Return all rows as tuples."""
    return await (await _run(conn, tuple_row, query, params)).fetchall()


async def _run(
    conn: Connection, factory: AsyncRowFactory[T], query: LiteralString, params: Params | None
) -> psycopg.AsyncCursor[T]:
    """Run the statement; return the cursor with all its rows, which nobody needs to close.

    A connection of a caller has no viewer, so all is visible to it.
    """
    if not isinstance(conn, DatabaseConnection) and f"%({VISIBLE_REPOS})s" in query:
        params = {VISIBLE_REPOS: None, **(params or {})}
    return await conn.cursor(row_factory=factory).execute(query, params)


async def execute(conn: Connection, query: LiteralString, params: Params | None = None) -> int:
    """Run the statement; return the number of affected rows."""
    return (await conn.execute(query, params)).rowcount
