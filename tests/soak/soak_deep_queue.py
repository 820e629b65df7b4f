"""Urgent jobs on a queue of a million, while a worker claims from it as fast as it can.

The queue is filled in bulk, with triggers off.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import pytest
from psycopg import AsyncConnection

from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with
from tests.support.statements import value

JOBS = 1_000_000
PASSED = 200_000
"""Jobs that are claimed before the urgent ones come: a claim from the start passes them."""
URGENT = 5
LATEST = 1.5
"""Maximum seconds from the submission of an urgent job to its start."""
BATCH = 50_000
COPY = """
WITH copied AS (
    SELECT g AS number, gen_random_uuid() AS id
      FROM generate_series(%(first)s::bigint, %(first)s + %(jobs)s - 1) g
), requests AS (
    INSERT INTO draftsman.job_requests OVERRIDING SYSTEM VALUE
    SELECT (jsonb_populate_record(r, jsonb_build_object(
               'number', c.number, 'id', c.id, 'idempotency_key', 'auto:' || c.id))).*
      FROM copied c CROSS JOIN draftsman.job_requests r
     WHERE r.number = %(job)s
)
INSERT INTO draftsman.job_states
SELECT (jsonb_populate_record(s, jsonb_build_object(
           'number', c.number, 'position', c.number * 100))).*
  FROM copied c CROSS JOIN draftsman.job_states s
 WHERE s.number = %(job)s
"""
"""Copies a queued job, with new numbers in this order."""


async def fill(url: str, job: int) -> None:
    """Queue `JOBS` copies of a job."""
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute("SET session_replication_role = replica")
        for first in range(job + 1, job + JOBS + 1, BATCH):
            await conn.execute(COPY, {"job": job, "first": first, "jobs": BATCH})
        await conn.execute("RESET session_replication_role")
        await conn.execute(
            f"ALTER TABLE draftsman.job_requests ALTER number RESTART WITH {job + JOBS + 1}"
        )
        await conn.execute("VACUUM (ANALYZE) draftsman.job_states, draftsman.job_requests")


@asynccontextmanager
async def snapshot(rt: Runtime) -> AsyncIterator[None]:
    """Keep a snapshot open, like that of a dump: no row that is changed after it is removed."""
    async with rt.db.snapshot() as conn:
        await value(conn, "SELECT count(*) FROM draftsman.queue_pauses")
        yield


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kept", [False, True], ids=["vacuumed", "with an open snapshot"])
async def test_an_urgent_job_starts_early(
    rt: Runtime, owner: Actor, conn: Connection, kept: bool
) -> None:
    first = await rt.submissions.submit(invocation(type="noop"), owner)
    await fill(rt.db.url, first.number)
    started = dict[int, float]()
    count = 0

    async def noop(ctx: RunContext) -> Outcome:
        nonlocal count
        count += 1
        if ctx.job.number > first.number + JOBS:
            started.setdefault(ctx.job.number, time.monotonic())
        return Done({})

    async def has_passed() -> bool:
        return count > PASSED

    delays = list[float]()
    async with (
        snapshot(rt) if kept else nullcontext(),
        running_worker(runtime_with(rt), {"noop": noop}, slots=100),
    ):
        await until(has_passed, "claims", 1500)
        for _ in range(URGENT):
            began = time.monotonic()
            job = await rt.submissions.submit(invocation(type="noop", priority=9), owner)

            async def has_started(number: int = job.number) -> bool:
                return number in started

            await until(has_started, "the urgent job")
            delays.append(started[job.number] - began)
        left = "SELECT count(*) FROM draftsman.job_states WHERE status = 'queued'"
        assert await value(conn, left) > JOBS // 10, "the queue stays deep"
    assert max(delays) < LATEST, delays
