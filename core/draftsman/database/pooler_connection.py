"""A connection through a transaction pooler, which gives each transaction another session.

A setting of the session would reach the next program that gets it, so that each transaction begins
with its own mode and settings. No statement is prepared: the next session does not know it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from psycopg import AsyncTransaction, IsolationLevel
from psycopg.pq import TransactionStatus

from draftsman.database.database_connection import (
    DatabaseConnection,
    DatabaseCursor,
    retry_conflicts,
)
from draftsman.database.named_queries import load

_Q = load("draftsman.database.schema")


class PoolerCursor(DatabaseCursor):
    """A cursor each of whose statements is a transaction with the settings of draftsman."""

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Run a statement. Raises LostRace after repeated conflicts without a transaction."""
        run = super().execute
        if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            return await run(query, params, **options)

        async def attempt() -> Self:
            async with self.connection.transaction():
                return await run(query, params, **options)

        return await retry_conflicts(attempt)


class PoolerConnection(DatabaseConnection):
    """A connection all of whose transactions have the given settings."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cursor_factory = PoolerCursor
        self._settings = "{}"

    async def begin_with(self, settings: Mapping[str, str], *, read_only: bool) -> None:
        """Let each transaction begin with these settings, READ COMMITTED, and not deferrable."""
        self.prepare_threshold = None
        self._settings = json.dumps(dict(settings))
        await self.set_isolation_level(IsolationLevel.READ_COMMITTED)
        await self.set_read_only(True if read_only else None)
        await self.set_deferrable(False)

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        """Begin a transaction with the settings, or a savepoint."""
        is_outermost = self.pgconn.transaction_status == TransactionStatus.IDLE
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if is_outermost:
                await self.execute(_Q["set_local"], {"settings": self._settings})
            yield transaction
