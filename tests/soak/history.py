"""A database with half a year of history, and markers of its content."""

from __future__ import annotations

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Any, LiteralString, cast
from uuid import UUID

import psycopg

FINISHED = 1_000_000
WAITING = 100_000
LIVE = {
    "scheduled": 5_000,
    "retrying": 5_000,
    "queued": 5_000,
    "resumed": 1_000,
    "claimed": 500,
    "running": 1_000,
}
"""Number of jobs in each of the other statuses."""
APPROVALS = 10_000
"""Number of waiting jobs that wait for an approval."""
WORKERS = 200
ALL = FINISHED + WAITING + sum(LIVE.values())
BATCH = 100_000
DAYS = 180
"""Age of the first job."""
ARCHIVED = date(2020, 1, 1)
"""A month archived long ago, with events of the first jobs."""
WORKER_IDS = [
    UUID(hashlib.md5(f"worker{n}".encode(), usedforsecurity=False).hexdigest())
    for n in range(WORKERS)
]
WORKER = WORKER_IDS[0]
"""A worker that is the leader and has no process."""
_TEXT = Path(__file__).with_name("history.sql").read_text()
_PARTS = re.split(
    r"^-- name: (\w+)\n", re.sub(r"^-- (?!name: ).*\n", "", _TEXT, flags=re.M), flags=re.M
)
SQL = dict(zip(_PARTS[1::2], (cast(LiteralString, part) for part in _PARTS[2::2]), strict=True))
TABLES = (
    *("runs", "drop_indexes", "events", "questions", "times", "answers", "tokens", "steps"),
    *(
        "checkpoints",
        "artifacts",
        "chunks",
        "logs",
        "activity",
        "targets",
        "deliveries",
        "archived",
        "workers",
        "known",
        "postponed",
        "suspects",
    ),
)


def seed(url: str) -> None:
    """Fill a migrated database, and analyze it."""
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as conn:
        for name in ("begin", "months"):
            conn.execute(SQL[name])
        indexes = conn.execute(SQL["indexes"]).fetchall()
        last = 0
        for status, count in groups():
            for first in range(last + 1, last + count + 1, BATCH):
                until = min(first + BATCH - 1, last + count)
                _run(conn, "jobs", status=status, first=first, last=until)
            last += count
        for name in TABLES:
            _run(conn, name)
        for (statement,) in indexes:
            conn.execute(statement)
        conn.execute(SQL["end"])
        conn.execute("VACUUM (FREEZE, ANALYZE)")


def groups() -> list[tuple[str, int]]:
    """Return the statuses in the order of their jobs' numbers, with the number of their jobs."""
    waiting = [("waiting_for_input", WAITING - APPROVALS), ("waiting_for_approval", APPROVALS)]
    return [("finished", FINISHED), *waiting, *LIVE.items()]


def _run(conn: psycopg.Connection[Any], name: str, **params: object) -> None:
    known: dict[str, object] = {"all": ALL, "waiting": FINISHED, "workers": WORKERS}
    known |= {"queued": FINISHED + WAITING + LIVE["scheduled"] + LIVE["retrying"]}
    known |= {"days": DAYS, "month": ARCHIVED, "batch": BATCH}
    conn.execute(SQL[name], known | params)


def key(number: int) -> str:
    """Return the idempotency key of a job."""
    return "seed:" + hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
