"""A worker process, so that its CPU is its own: the shipped crew, or the exchange alone.

It is told `go` and `stop` on stdin and tells what happens on stdout, one JSON object a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any
from uuid import uuid4

import psutil

from draftsman.domain.job import Status
from draftsman.domain.outcome import Done, Outcome
from draftsman.handlers.context import RunContext
from draftsman.runtime import open_runtime
from draftsman.settings import DatabaseSettings, Settings
from draftsman.store.claim import exchange
from draftsman.store.db import Database

TYPES = ["ask", "noop"]
MEGABYTE = 1_000_000


class Probe:
    """Counts starts; CPU and the clock begin with the first of them."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.count = 0
        self.cpu = 0.0

    def hit(self, job: int, run: int) -> None:
        """Note that a run started. Without a target each start is told at once."""
        if self.count == 0:
            self.cpu = _cpu()
        self.count += 1
        if self.target == 0:
            tell(event="start", job=job, run=run, at=time.monotonic_ns())
        elif self.count == self.target:
            tell(event="counted")

    def end(self) -> None:
        """Tell what the process used since the first start."""
        resident = psutil.Process().memory_info().rss
        tell(event="end", cpu=_cpu() - self.cpu, rss=resident / MEGABYTE)


def tell(**fields: Any) -> None:
    """Write one line, at once."""
    os.write(1, (json.dumps(fields) + "\n").encode())


async def crew(url: str, slots: int, probe: Probe, said: asyncio.StreamReader) -> None:
    """Run the shipped worker with heart, ear and leader, in its default configuration."""

    async def noop(ctx: RunContext) -> Outcome:
        probe.hit(ctx.job.number, ctx.job.run)
        return Done({})

    async def ask(ctx: RunContext) -> Outcome:
        if ctx.job.run > 1:
            probe.hit(ctx.job.number, ctx.job.run)
        await ctx.ask("pick", "Which one?", choices=["red", "blue"])
        return Done({})

    settings = Settings.model_validate({"database_url": url})
    async with open_runtime(settings) as runtime:
        shipped = runtime.crew({"noop": noop, "ask": ask}, slots=slots)
        tell(event="ready")
        await said.readline()
        working = asyncio.create_task(shipped.run())
        await said.readline()
        probe.end()
        shipped.shut_down("the bench is over")
        await working


async def alone(url: str, slots: int, probe: Probe, said: asyncio.StreamReader) -> None:
    """Call the exchange and nothing else: what is claimed is done with the next call."""
    db = Database(url, DatabaseSettings())
    await db.open()
    async with await db.dedicated() as work, await db.dedicated() as ear:
        await ear.execute("LISTEN draftsman_jobs")
        tell(event="ready")
        await said.readline()
        stop = asyncio.create_task(said.readline())
        worker, done = uuid4(), list[Any]()
        while not stop.done():
            got = await exchange(
                work,
                [(job.lease, {}) for job in done],
                worker=worker,
                queues=["default"],
                types=TYPES,
                skip=[],
                free=slots,
                ahead=0,
            )
            done = [job for job in got if job.status is Status.RUNNING]
            for job in done:
                probe.hit(job.number, job.run)
            if not got:
                async for _ in ear.notifies(timeout=1.0, stop_after=1):
                    pass
        probe.end()
    await db.close()


async def main(url: str, kind: str, slots: int, target: int) -> None:
    """Wait for `go`, work until `stop`."""
    said = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(said)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    await {"crew": crew, "alone": alone}[kind](url, slots, Probe(target), said)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
