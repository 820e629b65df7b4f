"""A connection whose statements end by a local timer and are repeated after a conflict."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, Self, TypeVar

from psycopg import AsyncConnection, AsyncCursor, OperationalError
from psycopg.abc import PQGen
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.pq import TransactionStatus

from draftsman.database.named_queries import VISIBLE_REPOS
from draftsman.errors import LostRace

T = TypeVar("T")
CONFLICT_RETRIES: Final = 3
"""Retries of a statement or a transaction after a deadlock or a serialization failure."""
EXTENSION: Final = 1.0
"""Seconds for reading a reply that has arrived when the timer ends: the process was busy."""


class TransactionConflict(LostRace):
    """A deadlock or a serialization failure, after which a transaction can be repeated."""


CONFLICTS: Final = (DeadlockDetected, SerializationFailure, TransactionConflict)


async def retry_conflicts(work: Callable[[], Awaitable[T]]) -> T:
    """Await `work`; retry three times after a deadlock or a serialization failure.

    Raises LostRace after the last retry.
    """
    for attempt in range(CONFLICT_RETRIES):
        try:
            return await work()
        except CONFLICTS:
            await asyncio.sleep(0.01 * 2**attempt)
    try:
        return await work()
    except CONFLICTS as error:
        lost = LostRace("too many conflicts with other transactions; try again")
        lost.sqlstate = error.sqlstate
        raise lost from error


class DatabaseCursor(AsyncCursor[Any]):
    """A cursor that repeats a statement without a transaction after a conflict.

    A query about what a viewer sees gets the repositories of the connection's viewer.
    """

    connection: DatabaseConnection

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Run a statement. Raises LostRace after repeated conflicts without a transaction."""
        run = super().execute
        if isinstance(query, str) and f"%({VISIBLE_REPOS})s" in query:
            params = {} if params is None else params
            if VISIBLE_REPOS not in params:
                params = {**params, VISIBLE_REPOS: self.connection.visible_repos}
        if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            return await run(query, params, **options)
        return await retry_conflicts(lambda: run(query, params, **options))


class DatabaseConnection(AsyncConnection[Any]):
    """A connection for which no reply takes longer than `reply_timeout`.

    A server whose packets are dropped never replies, and its statement timeout does not help.
    """

    reply_timeout: float | None = None
    """Seconds after which a connection without a reply is closed; None: unlimited."""
    visible_repos: list[str] | None = None
    """The repositories that its viewer may see, while it is lent to one; None: all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.opened_at = monotonic()
        self.cursor_factory = DatabaseCursor

    async def wait(self, gen: PQGen[T], *args: Any, **options: Any) -> T:
        """Let psycopg wait for the server; raises OperationalError without a reply in time."""
        with self.limited_reply():
            return await super().wait(gen, *args, **options)

    @contextmanager
    def limited_reply(self) -> Iterator[None]:
        """Close the connection when the block takes longer than the timeout."""
        if self.reply_timeout is None:
            yield
            return
        timer = _ReplyTimer(self.pgconn.socket, self.reply_timeout)
        try:
            yield
        except OperationalError as error:
            if not timer.expired:
                raise
            raise OperationalError(
                f"no reply from the server within {self.reply_timeout:.0f} s"
            ) from error
        finally:
            timer.cancel()


class _ReplyTimer:
    """Shuts a socket down after a time, which ends all waiting for it."""

    def __init__(self, socket: int, seconds: float) -> None:
        self.expired = False
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._handle = self._loop.call_later(seconds, self._end)

    def cancel(self) -> None:
        """Stop the timer."""
        self._handle.cancel()

    def _end(self) -> None:
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        if ready.poll(0):
            self._handle = self._loop.call_later(EXTENSION, self._end)
            return
        self.expired = True
        with socket.socket(fileno=os.dup(self._socket)) as connected:
            connected.shutdown(socket.SHUT_RDWR)
