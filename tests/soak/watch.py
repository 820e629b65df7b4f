"""What PostgreSQL does for a call of the store: which tables it reads, how, and how much."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncCursor, sql

from draftsman.store.db import Connection

TIMES = 12
"""Calls until the plan is settled: psycopg prepares the sixth, PostgreSQL decides on its sixth."""
LARGE = 1000
"""Rows from which on a table must not be read whole."""


@dataclass(slots=True)
class Seen:
    """What a call read at most, and the plans that it has by then."""

    whole: set[str] = field(default_factory=set)
    read: dict[str, int] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)


class Recorder(AsyncCursor[Any]):
    """A cursor that remembers what was asked on its connection."""

    asked: dict[str, Any]

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Run the statement as always, and note it."""
        if isinstance(query, str):
            self.asked[query] = params
        return await super().execute(query, params, **options)


async def watch(conn: Connection, call: Callable[[], Awaitable[object]]) -> Seen:
    """Make the call as often as it takes to settle its plans; take each back.

    Counts what its triggers read, too.
    """
    asked: dict[str, Any] = {}
    large = await _large(conn)
    seen = Seen()
    conn.cursor_factory = type("_Recorder", (Recorder,), {"asked": asked})
    try:
        for _ in range(TIMES):
            with _taken_back(conn):
                before = await _counters(conn)
                await call()
                _compare(seen, before, await _counters(conn), large)
    finally:
        conn.cursor_factory = AsyncCursor
    asked = {query: params for query, params in asked.items() if "draftsman." in query}
    for query, params in asked.items():
        seen.plans[query] = await _plan(conn, query, params or {})
        seen.whole |= {name for name in _scanned(seen.plans[query]) if name in large}
    return seen


@contextmanager
def _taken_back(conn: Connection) -> Iterator[None]:
    """Roll back behind the driver's back: it would forget its prepared statements with it."""
    conn.pgconn.exec_(b"BEGIN")
    try:
        yield
    finally:
        conn.pgconn.exec_(b"ROLLBACK")


async def _counters(conn: Connection) -> dict[str, tuple[int, int]]:
    cursor = AsyncCursor(conn)
    await cursor.execute(
        "SELECT relname, seq_scan, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)"
        " FROM pg_stat_xact_user_tables WHERE schemaname = 'draftsman'"
    )
    return {name: (scans, read) for name, scans, read in await cursor.fetchall()}


def _compare(
    seen: Seen,
    before: dict[str, tuple[int, int]],
    after: dict[str, tuple[int, int]],
    large: set[str],
) -> None:
    for name in large:
        scans, read = (a - b for a, b in zip(after[name], before[name], strict=True))
        seen.read[name] = max(seen.read.get(name, 0), read)
        if scans:
            seen.whole.add(name)


async def _large(conn: Connection) -> set[str]:
    cursor = await conn.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'draftsman'::regnamespace"
        " AND relkind = 'r' AND reltuples >= %s",
        (LARGE,),
    )
    return {name for (name,) in await cursor.fetchall()}


def _scanned(plan: str) -> set[str]:
    return set(re.findall(r"Seq Scan on (\w+)", plan))


async def _plan(conn: Connection, query: str, params: dict[str, Any]) -> str:
    """Return the plan that the prepared statement has settled on, custom or generic."""
    text, names = _numbered(query)
    cursor = await conn.execute(
        "SELECT name FROM pg_prepared_statements WHERE statement = %s"
        " ORDER BY generic_plans + custom_plans DESC LIMIT 1",
        (text,),
    )
    ((name,),) = await cursor.fetchall()
    statement = sql.SQL("EXPLAIN EXECUTE {}").format(sql.Identifier(name))
    if names:
        values = sql.SQL(", ").join(sql.Literal(params[item]) for item in names)
        statement += sql.SQL("({})").format(values)
    found = await conn.execute(statement)
    return "\n".join(line for (line,) in await found.fetchall())


def _numbered(query: str) -> tuple[str, list[str]]:
    """Return the statement as PostgreSQL got it, and its parameters in their order."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, query), names
