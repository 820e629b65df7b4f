"""Connections, transactions, and what PostgreSQL's errors mean here."""

from __future__ import annotations

import asyncio
import logging
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.adapt import AdaptersMap
from psycopg.pq import ConnStatus
from psycopg.rows import class_row, dict_row, scalar_row, tuple_row
from psycopg.types.enum import EnumInfo, register_enum
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from draftsman.domain.job import Mode, OnLost, Source, Status
from draftsman.domain.messages.delivery import ChannelName, DeliveryKind, DeliveryStatus
from draftsman.domain.question import OnDeny, OnExpire, QuestionKind, QuestionStatus
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.run import RunStatus
from draftsman.errors import (
    CommandHint,
    DatabaseUnreachable,
    DraftsmanError,
    LostRace,
    Refused,
    SchemaOutdated,
    SchemaUnsupported,
)
from draftsman.settings import DatabaseSettings
from draftsman.store.queries import load

_Q = load("schema")
T = TypeVar("T")
Connection = AsyncConnection[Any]
Params = Mapping[str, Any]

CONFLICT_RETRIES: Final = 3
"""How often an arrow runs again after a deadlock or a serialization failure."""
RECONNECT_TIMEOUT: Final = 2.0
"""Seconds of trying to reconnect unasked: then the next one who needs a connection tries at once,
instead of waiting for a back-off that grows to a minute."""
_ENUMS: Final[dict[str, type[StrEnum]]] = {
    "job_status": Status,
    "job_mode": Mode,
    "channel": Source,
    "run_status": RunStatus,
    "on_lost": OnLost,
    "error_class": ErrorClass,
    "question_kind": QuestionKind,
    "question_status": QuestionStatus,
    "on_expire": OnExpire,
    "on_deny": OnDeny,
    "delivery_channel": ChannelName,
    "delivery_kind": DeliveryKind,
    "delivery_status": DeliveryStatus,
}
_BEHIND = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.UndefinedObject,
    errors.InvalidSchemaName,
)
_PASSWORD_FILE: Final = re.compile(r'password retrieved from file "(.+)"')
"""What libpq adds to the server's refusal."""
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class Database:
    """A pool of autocommit connections to one database."""

    def __init__(self, url: str, settings: DatabaseSettings, *, read_only: bool = False) -> None:
        self.url = url
        self._settings = settings
        self._read_only = read_only
        self._adapters = AdaptersMap(psycopg.adapters)
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._how: dict[str, Any] = {
            "autocommit": True,
            "application_name": "draftsman",
            "context": self._adapters,
        }
        self._lines: list[DedicatedSession] = []

    async def open(self) -> None:
        """Connect; raises DatabaseUnreachable or SchemaOutdated at once, in one line."""
        with translate_errors():
            async with await self._connect(self.url) as conn:
                await self._learn_enums(conn)
        self._pool = AsyncConnectionPool(
            self.url,
            min_size=1,
            max_size=self._settings.pool_size,
            timeout=self._settings.connect_timeout,
            kwargs=self._how,
            configure=self._configure,
            reconnect_timeout=RECONNECT_TIMEOUT,
            open=False,
        )
        with (
            translate_errors()
        ):  # who asked before the first connection is there would get a second one
            await self._pool.open(wait=True, timeout=self._settings.connect_timeout)

    async def close(self) -> None:
        """Give the connections back; safe to call twice."""
        for line in self._lines:
            await line.close()
        if self._pool is not None:
            await self._pool.close()

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection on which each statement is its own transaction.

        Raises DatabaseUnreachable when there is none within `wait` seconds (None: as configured).
        """
        if (pool := self._pool) is None:
            raise DatabaseUnreachable("the database is not open")
        with translate_errors():
            conn = await _take(pool, wait)
            try:
                async with conn:
                    yield conn
            finally:
                await pool.putconn(conn)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection inside one transaction."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    async def run_transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in one transaction, again after a deadlock or a serialization failure."""
        return await retry_conflicts(lambda: self._once(work))

    async def dedicated_connection(
        self, url: str | None = None, *, pinned: bool = False
    ) -> Connection:
        """Open a connection outside the pool, for LISTEN and session locks; the caller closes.

        A `pinned` one plans each statement once, as `Line` says.
        """
        with translate_errors():
            conn = await self._connect(url or self.url)
            try:
                await self._configure(conn)
                if pinned:
                    conn.prepare_threshold = 0
                    await conn.execute(_Q["pin_plans"])
            except BaseException:
                await conn.close()
                raise
        return conn

    def dedicated_session(self, *, pinned: bool = True) -> DedicatedSession:
        """Return a session outside the pool for one caller, who never waits for others.

        A `pinned` one is for one statement, over and over.
        """
        self._lines.append(DedicatedSession(self, pinned=pinned))
        return self._lines[-1]

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.transaction() as conn:
            return await work(conn)

    async def _connect(self, url: str) -> Connection:
        return await AsyncConnection.connect(
            url,
            connect_timeout=max(2, round(self._settings.connect_timeout)),
            **self._how,
        )

    async def _learn_enums(self, conn: Connection) -> None:
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_Q["enums"])
            enums = await cursor.fetchall()
        if True in {enum.pop("unsupported") for enum in enums}:
            raise SchemaUnsupported
        known = {enum["name"]: EnumInfo(**enum) for enum in enums}
        found = known.keys() & _ENUMS.keys()
        if not found:
            raise SchemaOutdated(
                "the database has no draftsman schema, or an old one",
                hint=CommandHint("migrate", lead="run"),
            )
        for name in found:
            kind = _ENUMS[name]
            texts = {member: member.value for member in kind if member != "VALID"}
            register_enum(known[name], self._adapters, kind, mapping=texts)

    async def _configure(self, conn: Connection) -> None:
        timeout = f"{round(self._settings.statement_timeout * 1000)}ms"
        await conn.execute(_Q["configure"], {"timeout": timeout})
        if self._read_only:
            await conn.execute(_Q["read_only"])


class DedicatedSession:
    """A session of its own, connected when it is used first and whenever it was cut.

    Pinned plans are made once, of index scans and nested loops: no statistics, however old or
    wrong, make it read a table whole or sort it, and no call pays for planning.
    """

    def __init__(self, db: Database, *, pinned: bool = True) -> None:
        self._db = db
        self._pinned = pinned
        self._conn: Connection | None = None

    @asynccontextmanager
    async def connection(self, wait: float) -> AsyncIterator[Connection]:
        """Lend the session; raises DatabaseUnreachable when there is none within `wait` seconds."""
        with translate_errors():
            if self._conn is None or _cut(self._conn):
                await self.close()
                self._conn = await self._connect(wait)
            yield self._conn

    async def close(self) -> None:
        """Hang up; safe to call twice."""
        if self._conn is not None:
            await self._conn.close()
            self._conn = None

    async def _connect(self, wait: float) -> Connection:
        try:
            async with asyncio.timeout(wait):
                return await self._db.dedicated_connection(pinned=self._pinned)
        except TimeoutError:
            raise DatabaseUnreachable(f"no connection within {wait:.0f} s") from None


class translate_errors:
    """Turn PostgreSQL's errors into ours; deadlocks pass, `again` handles them.

    A connection that breaks while a statement is being cancelled raises its own error instead of
    the cancellation, which is raised here: who was told to end must not take it for an outage.
    """

    def __enter__(self) -> None:
        self._before = _cancellations()

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if not isinstance(error, psycopg.Error | PoolTimeout | PoolClosed):
            return
        if _cancellations() > self._before:
            raise asyncio.CancelledError from error
        if not isinstance(error, errors.DeadlockDetected | errors.SerializationFailure):
            raise to_domain_error(error) from error


def _cancellations() -> int:
    """Return how often this task was told to end, also where that came to nothing."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def to_domain_error(error: Exception) -> DraftsmanError:
    """Return the error of ours that a database error stands for."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, psycopg.Error) and error.sqlstate in ("DM001", "DM002", "DM003"):
        return LostRace(text)
    if isinstance(error, _BEHIND):
        return SchemaOutdated(text, hint=CommandHint("migrate", lead="run"))
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return Refused("this session is read-only")
    if isinstance(error, errors.QueryCanceled):
        return DatabaseUnreachable(f"the database took too long: {text}")
    if isinstance(error, errors.LockNotAvailable):
        return LostRace("others hold what this needs; try again")
    if isinstance(error, errors.InsufficientPrivilege):
        return Refused(f"the database role may not do that: {text}")
    if isinstance(error, errors.ProgramLimitExceeded):  # an OperationalError that waiting keeps
        return DraftsmanError(f"the database refused: {text}")
    if found := _PASSWORD_FILE.search(str(error)):
        return DatabaseUnreachable(
            f"the database refuses the password in {found[1]}: correct it; for the embedded"
            " PostgreSQL remove that file, and the next command sets another password"
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout | PoolClosed):
        return DatabaseUnreachable(f"the database cannot be reached: {text}")
    if isinstance(error, psycopg.InterfaceError):
        return DatabaseUnreachable(f"the connection to the database is gone: {text}")
    return DraftsmanError(f"the database refused: {text}")


async def _take(pool: AsyncConnectionPool[Connection], wait: float | None) -> Connection:
    """Take a connection; those that were cut while nobody used them are replaced at once.

    The pool's own check would wait a second after the first of them, then two, then four.
    """
    before = _cancellations()
    while _cut(conn := await pool.getconn(timeout=wait)):
        try:
            await conn.close()
        finally:
            await pool.putconn(conn)
    if _cancellations() > before:  # the pool loses one that comes together with the connection
        await pool.putconn(conn)
        raise asyncio.CancelledError
    return conn


def _cut(conn: Connection) -> bool:
    """Return whether the server hung up, as far as the socket on this side tells."""
    if conn.closed:
        return True
    ready = select.poll()
    ready.register(conn.pgconn.socket, select.POLLIN)
    try:
        while ready.poll(0):
            conn.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return conn.pgconn.status != ConnStatus.OK


async def retry_conflicts(work: Callable[[], Awaitable[T]]) -> T:
    """Await `work`, up to three times more after a deadlock or a serialization failure.

    Raises LostRace after the last one.
    """
    for attempt in range(CONFLICT_RETRIES):
        try:
            return await work()
        except (errors.DeadlockDetected, errors.SerializationFailure):
            await asyncio.sleep(0.01 * 2**attempt)
    try:
        return await work()
    except (errors.DeadlockDetected, errors.SerializationFailure) as error:
        raise LostRace("other work kept getting in the way; try again") from error


async def fetch_all(
    conn: Connection, query: LiteralString, params: Params | None, row: type[T]
) -> list[T]:
    """Return every row as `row`, built by column names."""
    async with conn.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def fetch_one(
    conn: Connection, query: LiteralString, params: Params | None, row: type[T]
) -> T | None:
    """Return the first row as `row`, or None."""
    async with conn.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchone()


async def scalar(conn: Connection, query: LiteralString, params: Params | None = None) -> Any:
    """Return the first column of the first row, or None where there is no row."""
    async with conn.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchone()


async def rows(
    conn: Connection, query: LiteralString, params: Params | None = None
) -> Sequence[tuple[Any, ...]]:
    """Return every row as a tuple."""
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def execute(conn: Connection, query: LiteralString, params: Params | None = None) -> int:
    """Run the statement; return how many rows it touched."""
    return (await conn.execute(query, params)).rowcount
