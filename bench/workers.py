"""Drains by several workers at once, and the settlements that they delay for each other."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from bench.measure import NEVER, Run, ServerCosts, fill
from bench.report import Figures

WORKERS = (1, 2, 4)


async def drains(run: Run) -> Figures:
    """Drain a queue with one worker, with two and with four; return rates, costs and skips.

    `kept` is the lowest rate of several workers divided by that of one.
    """
    figures = dict[str, float]()
    for workers in WORKERS:
        drained = await _drain(run, workers)
        figures |= {f"{name}_{workers}": value for name, value in drained.items()}
    several = [figures[f"rate_{workers}"] for workers in WORKERS[1:]]
    most = max(figures[f"skipped_percent_{workers}"] for workers in WORKERS)
    return figures | {"kept": min(several) / figures["rate_1"], "skipped_percent": most}


async def _drain(run: Run, workers: int) -> Figures:
    after = await fill(run)
    async with AsyncExitStack() as stack:
        crew = [
            await stack.enter_async_context(
                run.side.child("work", run.url, run.preset, NEVER, extra=run.extra)
            )
            for _ in range(workers)
        ]
        for worker in crew:
            await worker.hear("ready")
        counted = await ServerCosts.start(run)
        for worker in crew:
            worker.say("go")
        await run.until_idle()
        until = time.monotonic_ns()
        costs = await counted.per_job(0.0, run.jobs)
        for worker in crew:
            worker.say("stop")
        ends = [await worker.hear("end", passing="first") for worker in crew]
    await run.check_drained(after)
    first = min(end["first"] for end in ends if end["first"] is not None)
    settlements = sum(end["settlements"] for end in ends)
    return {
        "rate": run.jobs / ((until - first) / 1e9),
        "cpu_us": sum(end["cpu"] for end in ends if end["first"] is not None) / run.jobs * 1e6,
        "server_us": costs.get("server_us", 0.0),
        "skipped_percent": 100 * sum(end["skipped"] for end in ends) / max(1, settlements),
    }
