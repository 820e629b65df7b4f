"""Full load for some minutes: whether vacuum keeps up with it, and how the tables grow."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bench import checks
from bench.measure import NEVER, Run, ServerCosts
from bench.queue_process import Child
from bench.report import Figures
from bench.server import Session, session

MINUTES = 3.0
AHEAD = 10_000
"""Queued jobs below which more are submitted, so that the worker never waits."""
BATCHES = 5_000
"""Jobs that are submitted then, in batches of a thousand."""
EVERY = 5.0
"""Seconds between two samples."""
MB = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """State of the database at a moment of the load."""

    seconds: float
    finished: int
    tables: int
    """Bytes of the tables of the schema."""
    indexes: int
    claim: int
    """Bytes of the index of the claim."""
    dead: float
    """Dead rows of `job_states`, as a part of its rows."""
    vacuums: int
    """Runs of autovacuum in the schema."""


async def load(run: Run, minutes: float) -> Figures:
    """Submit and complete jobs for some minutes; raises BenchError if a job is incomplete."""
    after = await run.newest()
    samples = list[Sample]()
    async with (
        run.side.child("produce", run.url) as producer,
        run.side.child("work", run.url, run.preset, NEVER) as worker,
        session(run.url) as watching,
    ):
        await producer.hear("ready")
        await worker.hear("ready")
        counted = await ServerCosts.start(run)
        worker.say("go")
        submitted = await _loaded(watching, producer, samples, minutes * 60)
        await worker.hear("first")
        await run.until_idle()
        costs = await counted.per_job(0.0, submitted)
        worker.say("stop")
        await worker.hear("end")
    await checks.loaded(run.url, after, submitted)
    del costs["cpu_us"]
    return _figures(samples) | costs | {"jobs": float(submitted)}


async def _loaded(watching: Session, producer: Child, samples: list[Sample], seconds: float) -> int:
    """Keep the queue filled and take samples; return the number of submitted jobs."""
    began = time.monotonic()
    submitted = 0
    while True:
        queued = int(
            await watching.value(
                "SELECT count(*) FROM draftsman.job_states WHERE status = 'queued'"
            )
        )
        now = time.monotonic() - began
        if not samples or now - samples[-1].seconds >= EVERY or now >= seconds:
            samples.append(await _sample(watching, now, submitted - queued))
        if now >= seconds:
            return submitted
        if queued < AHEAD:
            await producer.submit(submitted, BATCHES, many=True)
            submitted += BATCHES
        else:
            await asyncio.sleep(0.05)


async def _sample(watching: Session, seconds: float, finished: int) -> Sample:
    values = await watching.value(
        """
        SELECT ARRAY[sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)),
                     pg_relation_size('draftsman.job_states_claim'),
                     1e6 * max(s.n_dead_tup::float8 / greatest(1, s.n_live_tup + s.n_dead_tup))
                             FILTER (WHERE c.relname = 'job_states'),
                     sum(s.autovacuum_count)]::float8[]
          FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
         WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind = 'r'
        """
    )
    tables, indexes, claim, dead, vacuums = values
    return Sample(
        seconds, finished, int(tables), int(indexes), int(claim), dead / 1e6, int(vacuums)
    )


def _figures(samples: list[Sample]) -> Figures:
    """Return the figures of a load; growth is that after the first quarter."""
    first = samples[0]
    last = samples[-1]
    early = next(sample for sample in samples if sample.seconds >= last.seconds / 4)
    late = next(sample for sample in samples if sample.seconds >= last.seconds * 3 / 4)
    millions = max(1, last.finished - early.finished) / 1e6
    return {
        "rate": _rate(first, last),
        "rate_kept": _rate(late, last) / max(1e-9, _rate(first, early)),
        "table_mb": (last.tables - early.tables) / MB / millions,
        "index_mb": (last.indexes - early.indexes) / MB / millions,
        "claim_mb": last.claim / MB,
        "claim_grows": last.claim / max(1, early.claim),
        "dead_percent": max(sample.dead for sample in samples) * 100,
        "dead_end_percent": last.dead * 100,
        "vacuums": float(last.vacuums - first.vacuums),
    }


def _rate(start: Sample, end: Sample) -> float:
    return (end.finished - start.finished) / max(1e-9, end.seconds - start.seconds)
