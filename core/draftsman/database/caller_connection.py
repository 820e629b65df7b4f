"""Connections opened by a caller, used inside the caller's transaction."""

from __future__ import annotations

import asyncio
from typing import Any, Self, cast

import psycopg
from psycopg.pq import TransactionStatus

from draftsman.database.database import Connection
from draftsman.errors import UsageError

CallersConnection = psycopg.AsyncConnection[Any] | psycopg.Connection[Any]
"""An asynchronous or blocking psycopg connection, with any row factory."""


def adapt(connection: CallersConnection) -> Connection:
    """Return the connection with the interface that the store uses.

    Raises UsageError for a connection of another library, and for autocommit without a transaction.
    """
    if not isinstance(connection, psycopg.AsyncConnection | psycopg.Connection):
        class_name = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise UsageError(f"connection must be a psycopg 3 connection, not {class_name}")
    if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
        raise UsageError(
            "connection is in autocommit mode without a transaction; use: with"
            " connection.transaction()"
        )
    if isinstance(connection, psycopg.AsyncConnection):
        return connection
    return cast(Connection, _Blocking(connection))


class _Blocking:
    """A blocking connection whose statements run in a thread.

    A statement may wait for a transaction of another thread that itself calls this client: on the
    event loop's thread, both would wait forever.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def cursor(self, *, row_factory: Any) -> _BlockingCursor:
        return _BlockingCursor(self._connection.cursor(row_factory=row_factory))

    async def execute(self, query: Any, params: Any = None) -> psycopg.Cursor[Any]:
        return await asyncio.to_thread(self._connection.execute, query, params)


class _BlockingCursor:
    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cursor.close()

    async def execute(self, query: Any, params: Any = None) -> Self:
        await asyncio.to_thread(self._cursor.execute, query, params)
        return self

    async def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    async def fetchone(self) -> Any:
        return self._cursor.fetchone()
