"""Databases with a history of finished and waiting jobs, seeded with SQL in chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString, cast
from uuid import UUID

from psycopg import AsyncConnection, sql

from bench.queue_process import Contestant
from bench.server import BenchError, BenchServer, Session, session

STEP = 50_000
"""Jobs per statement."""
SAMPLES = 3
"""Number of jobs that really run before their rows are copied."""
WORKER = UUID(int=1)
_PARTS = re.split(r"^-- name: (\w+)\n", Path(__file__).with_suffix(".sql").read_text(), flags=re.M)
SQL = dict(zip(_PARTS[1::2], (cast(LiteralString, part) for part in _PARTS[2::2]), strict=True))


@dataclass(frozen=True, slots=True)
class Backlog:
    """Numbers of jobs that exist before a measurement."""

    finished: int
    waiting: int

    def __str__(self) -> str:
        return f"{self.finished:,} finished and {self.waiting:,} waiting"


async def seed(place: BenchServer, side: Contestant, database: str, past: Backlog) -> None:
    """Seed a database that has the tables of a queue; raises BenchError."""
    url = place.url(database)
    async with session(url) as into:
        await into.conn.execute("SET synchronous_commit = off")
        if side.ours:
            await seed_draftsman(into.conn, past)
        else:
            await _copy(into, side, url, past)
        await into.conn.execute("RESET session_replication_role")
        await into.conn.execute("VACUUM (FREEZE, ANALYZE)")


async def seed_draftsman(conn: AsyncConnection, past: Backlog) -> None:
    """Seed the history into a migrated, empty database; requires a superuser."""
    await conn.execute("SET session_replication_role = replica")
    total = past.finished + past.waiting
    for first in range(1, total + 1, STEP):
        last = min(first + STEP - 1, total)
        values = {"first": first, "last": last, "finished": past.finished, "worker": WORKER}
        for name in ("jobs", "states", "runs", "events", "questions"):
            await conn.execute(SQL[name], values)
    await conn.execute(SQL["done"], {"last": total})


async def _copy(into: Session, side: Contestant, url: str, past: Backlog) -> None:
    """Run a few jobs, and copy the rows of a job in each of its states."""
    waiting = side.about["waiting"]
    finished = side.about["finished"]
    if not waiting:
        raise BenchError("its rows cannot be copied in SQL")
    async with side.child("produce", url) as producer:
        await producer.hear("ready")
        await producer.submit(0, 1, many=False)
        await _keep(into, "waiting", waiting)
        await producer.submit(1, SAMPLES - 1, many=False)
    async with side.child("work", url, "fast", SAMPLES) as worker:
        await worker.hear("ready")
        worker.say("go")
        await worker.hear("first")
        await worker.hear("counted")
        await into.until(f"SELECT NOT ({side.about['unfinished']})", "the samples to end")
        worker.say("stop")
        await worker.hear("end")
    await _keep(into, "finished", finished)
    await into.conn.execute("SET session_replication_role = replica")
    await _multiply(into, "finished", finished, past.finished)
    await _multiply(into, "waiting", waiting, past.waiting)


async def _keep(into: Session, state: str, tables: list[tuple[str, dict[str, str]]]) -> None:
    for number, (table, _) in enumerate(tables):
        await into.conn.execute(
            f"CREATE TEMP TABLE {state}{number} AS SELECT * FROM {table} ORDER BY ctid DESC LIMIT 1"
        )


async def _multiply(
    into: Session, state: str, tables: list[tuple[str, dict[str, str]]], count: int
) -> None:
    for number, (table, differs) in enumerate(tables):
        columns = await into.value(
            "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attgenerated = ''",
            table,
        )
        values = [differs.get(name) or f'one."{name}"' for name in columns]
        names = sql.SQL(", ").join(map(sql.Identifier, columns)).as_string(into.conn)
        await into.conn.execute(
            f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE"
            f" SELECT {', '.join(values)} FROM {state}{number} AS one,"
            f" generate_series(1, {count}) AS g"
        )
