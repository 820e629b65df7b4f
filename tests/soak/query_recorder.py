"""PostgreSQL's work for a call of the store: tables, access methods, and rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from psycopg import AsyncCursor, sql
from psycopg.pq import ExecStatus

from draftsman.database.database import Connection
from draftsman.database.database_connection import DatabaseCursor
from draftsman.database.named_queries import VISIBLE_REPOS
from draftsman.database.pinned_connection import PinnedConnection, Statement
from tests.soak.query_plan import Plan
from tests.support.queries import NAMES

LARGE = 1000
"""Number of rows from which a table must not be read completely."""
NO_PLAN = (
    "LISTEN",
    "COPY",
    "SELECT draftsman.link_jobs",
    "SELECT draftsman.record_spawn",
    "SELECT job, parent, skipped",
)
"""Statements without a plan, or about a job that their transaction submitted: they cannot be
repeated, because that was rolled back."""


@dataclass(slots=True)
class QueryStats:
    """Queries of a call, their plans, and rows read of each table, with triggers."""

    plans: list[Plan] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    read: Counter[str] = field(default_factory=Counter)

    @property
    def held(self) -> int:
        """Return the number of rows of the largest sort or hash."""
        return max((plan.held() for plan in self.plans), default=0)

    @property
    def buffers(self) -> int:
        """Return the pages that its statements read."""
        return sum(plan.buffers for plan in self.plans)

    @property
    def ms(self) -> float:
        """Return the milliseconds that its statements took."""
        return sum(plan.ms for plan in self.plans)


class Recorder(DatabaseCursor):
    """A cursor that records the queries of its connection."""

    asked: list[tuple[str, Any]]

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Run the statement, and record it."""
        if query in NAMES:
            viewed = {VISIBLE_REPOS: self.connection.visible_repos}
            self.asked.append((query, viewed | (params or {})))
        return await super().execute(query, params, **options)

    @asynccontextmanager
    async def copy(  # type: ignore[override]
        self, query: Any, params: Any = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Copy, and record the statement."""
        self.asked.append((query, params))
        async with super().copy(query, params, **options) as lines:
            yield lines


async def watch(
    conn: Connection, call: Callable[[Connection], Awaitable[object]], given: str = ""
) -> QueryStats:
    """Make the call and roll it back; then run its statements again with EXPLAIN.

    Both begin after the statements `given`. The session prepares every statement at once, and
    `plan_cache_mode` selects the kind of plan.
    """
    executed: list[tuple[str, Any]] = []
    stats = QueryStats()
    large = await _large(conn)
    conn.prepare_threshold = 0
    conn.cursor_factory = type("_Recorder", (Recorder,), {"asked": executed})
    if isinstance(conn, PinnedConnection):
        conn.fetch = partial(_fetch, conn.fetch, executed)  # type: ignore[method-assign]
    try:
        with _rolled_back(conn, given):
            before = await _counters(conn)
            await call(conn)
            after = await _counters(conn)
    finally:
        conn.cursor_factory = DatabaseCursor
        vars(conn).pop("fetch", None)
    for name in large:
        scans, rows = (
            a - b for a, b in zip(after.get(name, before[name]), before[name], strict=True)
        )
        stats.read[name] = rows
        stats.whole |= {name} if scans else set()
    stats.asked = {NAMES[query] for query, _ in executed}
    with _rolled_back(conn, given):
        for query, params in executed:
            if not query.startswith(NO_PLAN):
                statement = await _prepared(conn, query, params or {})
                stats.plans.append(await _plan(conn, NAMES[query], statement))
                stats.read -= await _read_by_planner(conn, statement)
    for plan in stats.plans:
        stats.whole |= plan.whole() & large
        stats.read |= Counter({name: n for name, n in plan.read().items() if name in large})
    return stats


async def _fetch(
    fetch: Callable[..., Awaitable[Any]],
    executed: list[tuple[str, Any]],
    statement: Statement,
    values: Any,
) -> Any:
    """Run the statement of a pinned session, and record it."""
    executed.append((statement.query, values))
    return await fetch(statement, values)


@contextmanager
def _rolled_back(conn: Connection, given: str) -> Iterator[None]:
    """Roll back without the driver, which would discard its prepared statements."""
    result = conn.pgconn.exec_(f"BEGIN; {given}".encode())
    try:
        assert result.status == ExecStatus.COMMAND_OK, result.error_message.decode()
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


async def _large(conn: Connection) -> set[str]:
    cursor = await conn.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'draftsman'::regnamespace"
        " AND relkind = 'r' AND reltuples >= %s",
        (LARGE,),
    )
    return {name for (name,) in await cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement of the session, and the list of its values."""

    name: str
    text: str
    types: list[str]
    values: sql.Composable

    def executed(self, name: str = "") -> sql.Composed:
        """Return the EXECUTE of it, or of a copy with another name."""
        return sql.SQL("EXECUTE {}{}").format(sql.Identifier(name or self.name), self.values)


async def _prepared(conn: Connection, query: str, params: dict[str, Any]) -> Prepared:
    text, names = _numbered(query)
    cursor = await conn.execute(
        "SELECT name, parameter_types::text[] FROM pg_prepared_statements WHERE statement = %s"
        " ORDER BY prepare_time DESC LIMIT 1",
        (text,),
    )
    ((name, types),) = await cursor.fetchall()
    values = sql.SQL(", ").join(sql.Literal(params[item]) for item in names)
    return Prepared(name, text, types, sql.SQL("({})").format(values) if names else sql.SQL(""))


async def _plan(conn: Connection, name: str, statement: Prepared) -> Plan:
    """Run the statement again with EXPLAIN."""
    explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ")
    cursor = await conn.execute(explain + statement.executed(), prepare=False)
    ((output,),) = await cursor.fetchall()
    took = output[0]["Planning Time"] + output[0]["Execution Time"]
    return Plan(name, output[0]["Plan"], took)


async def _read_by_planner(conn: Connection, statement: Prepared) -> Counter[str]:
    """Plan the statement anew; return the rows that this reads, which the counters include.

    The planner looks up the ends of some indexes. It reads these rows only where a page has changed
    since the last vacuum, so their number depends on the earlier calls, which were rolled back.
    """
    before = await _counters(conn)
    types = f"({', '.join(statement.types)})" if statement.types else ""
    await conn.execute(f"PREPARE planned{types} AS {statement.text}", prepare=False)
    await conn.execute(sql.SQL("EXPLAIN ") + statement.executed("planned"), prepare=False)
    await conn.execute("DEALLOCATE planned", prepare=False)
    after = await _counters(conn)
    return Counter({name: rows - before[name][1] for name, (_, rows) in after.items()})


def _numbered(query: str) -> tuple[str, list[str]]:
    """Return the statement with numbered parameters, and the parameters in order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, query).replace("%%", "%"), names
