"""A database with a past, and marks of what is in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString, cast
from uuid import uuid4

import psycopg

from draftsman.domain.run import Lease
from draftsman.store.db import Connection

FINISHED = 200_000
WAITING = 20_000
LIVE = 500
"""Jobs in each of scheduled, retrying, running and queued."""
BATCH = 10_000
WORKER = uuid4()
_PARTS = re.split(
    r"^-- name: (\w+)\n", Path(__file__).with_name("history.sql").read_text(), flags=re.M
)
SQL = dict(zip(_PARTS[1::2], (cast(LiteralString, part) for part in _PARTS[2::2]), strict=True))


def seed(url: str) -> None:
    """Fill a migrated database, and let PostgreSQL look at what is in it."""
    with psycopg.connect(url, autocommit=True) as conn:
        for first in range(1, FINISHED, BATCH):
            _submit(conn, "finished", first, first + BATCH - 1)
            _run(conn, "start", "finish")
        _run(conn, "answered")
        for first in range(1, WAITING, BATCH):
            _submit(conn, "waiting", first, first + BATCH - 1)
            _run(conn, "start", "ask")
        _submit(conn, "retrying", 1, LIVE)
        _run(conn, "start", "retry")
        _submit(conn, "running", 1, LIVE)
        _run(conn, "start")
        _submit(conn, "scheduled", 1, LIVE)
        _submit(conn, "queued", 1, LIVE)
        conn.execute("VACUUM ANALYZE")


def _submit(conn: psycopg.Connection, state: str, first: int, last: int) -> None:
    conn.execute(SQL["submit"], {"state": state, "first": first, "last": last})


def _run(conn: psycopg.Connection, *names: str) -> None:
    for name in names:
        conn.execute(SQL[name], {"worker": WORKER})


@dataclass(frozen=True, slots=True)
class Marks:
    """Jobs of that past, by what became of them."""

    running: list[Lease]
    waiting: int
    queued: int
    completed: int
    middle: int
    epoch: int
    txid: int

    @classmethod
    async def of(cls, conn: Connection) -> Marks:
        """Look them up."""

        async def rows(query: LiteralString) -> list[tuple[int, ...]]:
            return await (await conn.execute(query)).fetchall()

        running = await rows(
            "SELECT number, run_count, lease_token FROM draftsman.jobs"
            " WHERE status = 'running' ORDER BY number LIMIT 100"
        )
        ((waiting, queued, completed),) = await rows(
            "SELECT max(number) FILTER (WHERE status = 'waiting_for_input'),"
            " max(number) FILTER (WHERE status = 'queued'),"
            " max(number) FILTER (WHERE status = 'completed') FROM draftsman.jobs"
        )
        ((epoch, txid),) = await rows(
            "SELECT epoch, txid::text::bigint FROM draftsman.job_events ORDER BY id"
            " OFFSET 300000 LIMIT 1"
        )
        leases = [Lease(*row) for row in running]
        return cls(leases, waiting, queued, completed, completed // 2, epoch, txid)
