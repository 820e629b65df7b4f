"""The limits of the machine: commits, and the smallest statement that swaps jobs of a queue.

A swap completes the jobs that the last swap claimed and claims as many: two changes of a narrow
row for each job, without events, guards or a program.
"""

from __future__ import annotations

import asyncio
import re
from typing import LiteralString

from bench.measure import Run, ServerCosts
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.database.embedded import binaries

SECONDS = 3
ROWS = 1_000_000
"""More than a machine swaps in that time."""
REAPED = 1.0
"""Seconds until the CPU of an ended server process is counted."""
TABLE: tuple[LiteralString, ...] = (
    "CREATE TABLE floor_jobs (id int PRIMARY KEY, status smallint NOT NULL) WITH (fillfactor = 50)",
    "CREATE INDEX ON floor_jobs (status, id) WHERE status < 2",
    "INSERT INTO floor_jobs SELECT g, 0 FROM generate_series(1, %s) g",
    "VACUUM ANALYZE floor_jobs",
)
SWAP = """
    WITH finished AS (UPDATE floor_jobs SET status = 2 WHERE status = 1),
         next AS (SELECT id FROM floor_jobs WHERE status = 0 ORDER BY id LIMIT {size}
                     FOR UPDATE SKIP LOCKED)
    UPDATE floor_jobs SET status = 1 FROM next WHERE floor_jobs.id = next.id;
"""
COMMIT = "SELECT pg_logical_emit_message(true, 'bench', 'x');"
"""A transaction with a few bytes of WAL, which its commit flushes."""


async def swap10(run: Run) -> Figures:
    """Swap ten jobs at a time."""
    return await _swap(run, 10)


async def swap100(run: Run) -> Figures:
    """Swap a hundred jobs at a time."""
    return await _swap(run, 100)


async def commits(run: Run) -> Figures:
    """Commit as often as a client can that waits for each commit."""
    return {"rate": await _pgbench(run, COMMIT) / SECONDS}


async def _swap(run: Run, size: int) -> Figures:
    async with session(run.url) as database:
        for statement in TABLE:
            await database.conn.execute(statement.replace("%s", str(ROWS)))
        await run.place.checkpoint()
        counted = await ServerCosts.start(run)
        jobs = await _pgbench(run, SWAP.format(size=size)) * size
        await asyncio.sleep(REAPED)
        costs = await counted.per_job(0.0, jobs)
        claimed = await database.value("SELECT count(*) FROM floor_jobs WHERE status > 0")
    if claimed != jobs:
        raise BenchError(f"{jobs} jobs were to be claimed, {claimed} are")
    del costs["cpu_us"]
    return {"rate": jobs / SECONDS} | costs


async def _pgbench(run: Run, script: str) -> int:
    """Run a prepared statement with a single client; return the number of transactions."""
    process = await asyncio.create_subprocess_exec(
        *(str(binaries.program("pgbench")), "-n", "-M", "prepared", "-T", str(SECONDS), "-f", "-"),
        run.url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(" ".join(script.split()).encode() + b"\n")
    done = re.search(r"transactions actually processed: (\d+)", out.decode())
    if process.returncode or done is None or not int(done[1]):
        raise BenchError(f"pgbench failed: {err.decode().strip()[-200:]}")
    return int(done[1])
