"""The limits of the machine: commits, and the smallest statement that swaps jobs of a queue.

A swap completes the jobs that the last swap claimed and claims as many, and keeps a run and four
events of each: it deletes a narrow row of the queue, inserts the run, later updates it in place,
and writes the events of all jobs as one row. It has no guards, states or program.
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
TABLES: tuple[LiteralString, ...] = (
    "CREATE TABLE floor_ready (job int PRIMARY KEY)",
    """CREATE TABLE floor_runs (job int PRIMARY KEY, ended_at timestamptz,
       started_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50)""",
    """CREATE TABLE floor_events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       ended int[] NOT NULL, started int[] NOT NULL, at timestamptz NOT NULL DEFAULT now())""",
    "CREATE TABLE floor_workers (running int[] NOT NULL)",
    "INSERT INTO floor_ready SELECT generate_series(1, %s)",
    "INSERT INTO floor_workers VALUES ('{}')",
    "VACUUM ANALYZE floor_ready",
)
SWAP = """
    WITH ended AS (UPDATE floor_runs SET ended_at = now()
                    WHERE job = ANY (ARRAY(SELECT unnest(running) FROM floor_workers))
                      AND ended_at IS NULL
                RETURNING job),
         next AS (SELECT ctid AS location FROM floor_ready ORDER BY job LIMIT {size}
                     FOR UPDATE SKIP LOCKED),
         claimed AS (DELETE FROM floor_ready USING next WHERE floor_ready.ctid = location
                  RETURNING job),
         opened AS (INSERT INTO floor_runs (job) SELECT job FROM claimed),
         history AS (INSERT INTO floor_events (ended, started)
                     SELECT ARRAY(SELECT job FROM ended), ARRAY(SELECT job FROM claimed))
    UPDATE floor_workers SET running = ARRAY(SELECT job FROM claimed);
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
        for statement in TABLES:
            await database.conn.execute(statement.replace("%s", str(ROWS)))
        await run.place.checkpoint()
        counted = await ServerCosts.start(run)
        jobs = await _pgbench(run, SWAP.format(size=size)) * size
        await asyncio.sleep(REAPED)
        costs = await counted.per_job(0.0, jobs)
        started = await database.value("SELECT count(*) FROM floor_runs")
        recorded = await database.value("SELECT sum(cardinality(started)) FROM floor_events")
    if (started, recorded) != (jobs, jobs):
        raise BenchError(f"{jobs} jobs were to be claimed; runs: {started}, events: {recorded}")
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
