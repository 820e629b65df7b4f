"""Statements that the database must reject."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from draftsman.database.database import Connection, to_domain_error

TRANSITION = "DM001"
CHANGE = "DM002"
CONSISTENCY = "DM003"
CHECK = "23514"
UNIQUE = "23505"
FOREIGN_KEY = "23503"
FORBIDDEN = "42501"


@asynccontextmanager
async def refused(sqlstate: str, about: str = "") -> AsyncIterator[None]:
    """Expect PostgreSQL to reject a statement with this SQLSTATE, and to say `about`."""
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate, caught.value
    assert about in f"{caught.value} {to_domain_error(caught.value)}"


async def outcome(conn: Connection, text: str, params: Mapping[str, Any] | None = None) -> str:
    """Run a statement and roll it back; return its result: `ok`, or its SQLSTATE."""
    try:
        async with conn.transaction(force_rollback=True):
            await run(conn, text, params)
    except psycopg.Error as error:
        return error.sqlstate or type(error).__name__
    return "ok"


async def run(
    conn: Connection, text: str, params: Mapping[str, Any] | Sequence[Any] | None = None
) -> int:
    """Run a statement of a test; return its number of rows."""
    return (await conn.execute(text, params)).rowcount


async def rows(
    conn: Connection, text: str, params: Mapping[str, Any] | Sequence[Any] | None = None
) -> list[tuple[Any, ...]]:
    """Return every row of a query."""
    return await (await conn.execute(text, params)).fetchall()


async def value(
    conn: Connection, text: str, params: Mapping[str, Any] | Sequence[Any] | None = None
) -> Any:
    """Return the only value of a query."""
    ((result,),) = await rows(conn, text, params)
    return result
