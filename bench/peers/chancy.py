"""chancy: claims in batches, writes completions once a second."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from chancy import Chancy, Worker, job
from chancy import Queue as ChancyQueue

from bench.peers.peer import QUEUE, About, Probe

STARTED: list[Probe] = []
"""Probe of this process: the function of a job is imported by name, and cannot be a closure."""


@job(queue=QUEUE)
async def noop(*, i: int) -> None:
    """Do nothing."""
    STARTED[0].hit(i)


class Queue:
    """Its executor for coroutines has a hundred slots by default."""

    ABOUT = About(
        distribution="chancy",
        default={"concurrency": 10},
        fast={"concurrency": 100},
        unfinished="SELECT EXISTS (SELECT FROM chancy_jobs WHERE scheduled_at < now() + '1 day'"
        " AND state NOT IN ('succeeded', 'failed', 'expired'))",
        finished=[("chancy_jobs", {"id": "gen_random_uuid()", "unique_key": "NULL"})],
        waiting=[
            (
                "chancy_jobs",
                {
                    "id": "gen_random_uuid()",
                    "unique_key": "NULL",
                    "scheduled_at": "now() + interval '1 year'",
                },
            )
        ],
        share=(0.5, 1.0),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.settings = settings
        log = logging.getLogger("bench")
        self.app = Chancy(url, min_connection_pool_size=1, max_connection_pool_size=10, log=log)

    async def prepare(self) -> None:
        async with self.app:
            await self.app.migrate()

    async def open(self) -> None:
        await self.app.__aenter__()

    async def submit(self, number: int) -> None:
        await self.app.push(noop.job.with_kwargs(i=number))

    async def submit_many(self, numbers: range) -> None:
        async for _ in self.app.push_many([noop.job.with_kwargs(i=number) for number in numbers]):
            pass

    async def work(self, probe: Probe) -> None:
        STARTED.append(probe)
        queue = ChancyQueue(
            QUEUE, executor=Chancy.Executor.Async, eager_polling=True, **self.settings
        )
        async with self.app:
            await self.app.declare(queue, upsert=True)
            async with Worker(self.app, register_signal_handlers=False):
                await asyncio.Event().wait()
