"""A connection for a few statements that are repeated all the time.

A cursor of psycopg costs more time than such a statement takes on the server: it converts the query
and each parameter, makes several objects, and adds and removes a reader of the socket for each
reply. Here the statement is converted once, parameters are sent as text, rows are decoded in C, and
the socket keeps its reader.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Final, LiteralString, TypeVar

from psycopg import AsyncConnection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row

from draftsman.database.database_connection import DatabaseConnection, retry_conflicts

T = TypeVar("T")
BIGINT: Final = 20
"""Type of a parameter that is an integer; other types are inferred by the server."""
CANCEL_TIMEOUT: Final = 5.0
"""Seconds in which the server must end the statement of a canceled call."""
_numbers: Final = count()
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_SUCCESS: Final = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class Statement:
    """A query whose parameters are texts and integers; `integers` names the integers."""

    def __init__(self, query: LiteralString, integers: Sequence[str] = ()) -> None:
        self.query = query
        self.names = tuple(dict.fromkeys(_PARAMETER.findall(query)))
        self.types = [BIGINT if name in integers else 0 for name in self.names]
        positions = {name: f"${number}" for number, name in enumerate(self.names, 1)}
        numbered = _PARAMETER.sub(lambda match: positions[match[1]], query)
        self.text = numbered.replace("%%", "%").encode()


@cache
def statement(query: LiteralString, *integers: str) -> Statement:
    """Return the statement of a query, always the same object."""
    return Statement(query, integers)


class PinnedConnection(DatabaseConnection):
    """A connection that prepares each statement once and keeps it.

    `fetch` is for autocommit only: psycopg deallocates all prepared statements after a rollback,
    and the error of a missing statement, after which it is prepared again, ends a transaction.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._reader: tuple[asyncio.AbstractEventLoop, int] | None = None
        """The event loop that reads the socket, and the socket."""
        self._waiter: asyncio.Future[PGresult] | None = None
        self._last_result: PGresult | None = None
        self._prepared_names: dict[Statement, bytes] = {}
        self._codec = self.info.encoding
        self._transformer = Transformer(self)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return bool(self.pgconn.transaction_status == TransactionStatus.IDLE)

    async def fetch(
        self, statement: Statement, params: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        """Return all rows; a value is text, a number or None.

        Raises LostRace after repeated conflicts with other transactions.
        """
        return await retry_conflicts(lambda: self._fetch(statement, params))

    async def _fetch(
        self, statement: Statement, params: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        codec = self._codec
        parameters = [
            None if (value := params[name]) is None else str(value).encode(codec)
            for name in statement.names
        ]
        async with self.lock:
            name = self._prepared_names.get(statement) or await self._prepare(statement)
            try:
                self.pgconn.send_query_prepared(name, parameters)
                result = await self._result()
            except InvalidSqlStatementName:
                self._prepared_names.clear()
                self.pgconn.send_query_prepared(await self._prepare(statement), parameters)
                result = await self._result()
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    async def wait(self, gen: PQGen[T], *args: Any, **options: Any) -> T:
        """Let psycopg wait for the socket, with a reader of its own."""
        self._stop_reading()
        return await super().wait(gen, *args, **options)

    async def close(self) -> None:
        """Disconnect; safe to call twice. A call that waits for a reply fails."""
        self._stop_reading()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(OperationalError("the connection was closed"))
        await super().close()

    async def _prepare(self, statement: Statement) -> bytes:
        name = b"pinned_%d" % next(_numbers)
        self.pgconn.send_prepare(name, statement.text, statement.types)
        await self._result()
        self._prepared_names[statement] = name
        return name

    async def _result(self) -> PGresult:
        """Wait for the result; raises psycopg's error."""
        if self.pgconn.flush():  # parameters that are larger than the socket's buffer
            result: PGresult = (await self.wait(execute(self.pgconn)))[-1]
        else:
            result = await self._reply()
        if result.status not in _SUCCESS:
            raise error_from_result(result, encoding=self._codec)
        return result

    async def _reply(self) -> PGresult:
        if self._reader is None:
            self._reader = asyncio.get_running_loop(), self.pgconn.socket
            self._reader[0].add_reader(self._reader[1], self._read)
        self._waiter = self._reader[0].create_future()
        self._last_result = None
        try:
            with self.limited_reply():
                return await self._waiter
        except BaseException:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._cancel_statement()
            raise
        finally:
            self._waiter = None

    def _read(self) -> None:
        """Read the socket, also the end of an idle session."""
        waiter = self._waiter
        try:
            self.pgconn.consume_input()
            if waiter is None or waiter.done():
                return
            while not self.pgconn.is_busy():
                if (result := self.pgconn.get_result()) is not None:
                    self._last_result = result
                elif self._last_result is not None:
                    waiter.set_result(self._last_result)
                    return
                else:
                    raise OperationalError("the server sent no reply")
        except Error as error:
            self._stop_reading()
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)

    def _stop_reading(self) -> None:
        if self._reader is not None:
            loop, socket = self._reader
            self._reader = None
            if not loop.is_closed():
                loop.remove_reader(socket)

    async def _cancel_statement(self) -> None:
        """End the statement of a canceled call on the server; disconnect if that fails."""
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self.cancel_safe()
                await self.wait(execute(self.pgconn))
        except Exception:
            self.pgconn.finish()


async def fetch(
    conn: AsyncConnection[Any], statement: Statement, params: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    """Return all rows as tuples, of any connection; arrays are passed as text."""
    if isinstance(conn, PinnedConnection) and conn.is_idle:
        return await conn.fetch(statement, params)
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(statement.query, params)
        return await cursor.fetchall()


def integer_array(numbers: Iterable[int]) -> str:
    """Return the text of an array of integers."""
    return "{" + ",".join(map(str, numbers)) + "}"


def text_array(texts: Iterable[str]) -> str:
    """Return the text of an array of texts, or of another type with these texts."""
    return "{" + ",".join(map(_quoted, texts)) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
