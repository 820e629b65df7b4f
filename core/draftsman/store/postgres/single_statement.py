"""A single statement as a transaction, without the round trips of BEGIN and COMMIT."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from draftsman.store.postgres.database import Connection, Database, retry_conflicts

T = TypeVar("T")


async def run_statement(db: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Run `work`, which is one statement; retry as `Database.run_transaction` does."""

    async def attempt() -> T:
        async with db.connection() as conn:
            return await work(conn)

    return await retry_conflicts(attempt)
