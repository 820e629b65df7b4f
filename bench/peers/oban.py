"""oban: claims in batches, writes each completion with a statement in a transaction per batch."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import uvloop
from oban import Job, Oban, worker
from oban.schema import install

from bench.peers.peer import QUEUE, SEEDED, About, Probe

STARTED: list[Probe] = []
"""Probe of this process: the class of a job is found by name, and cannot be a closure."""


@worker(queue=QUEUE)
class Noop:
    """A job that does nothing."""

    async def process(self, job: Job) -> None:
        STARTED[0].hit(job.args["i"])


class Queue:
    """The limit of its queue is the only setting of throughput; uvloop is its program's loop."""

    ABOUT = About(
        distribution="oban",
        default={"limit": 10},
        fast={"limit": 100},
        unfinished="SELECT EXISTS (SELECT FROM oban_jobs"
        f" WHERE id < {SEEDED} AND state IN ('available', 'executing', 'retryable'))",
        finished=[("oban_jobs", {"id": f"{SEEDED} + g"})],
        waiting=[
            (
                "oban_jobs",
                {
                    "id": f"{2 * SEEDED} + g",
                    "state": "'scheduled'",
                    "scheduled_at": "now() + interval '1 year'",
                },
            )
        ],
        share=(0.5, 0.5),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        self.url = url
        self.settings = settings

    async def prepare(self) -> None:
        pool = await Oban.create_pool(self.url)
        await install(pool)
        await pool.close()

    async def open(self) -> None:
        self.stack = AsyncExitStack()
        self.oban = await self.stack.enter_async_context(
            Oban(pool=await Oban.create_pool(self.url))
        )

    async def submit(self, number: int) -> None:
        await self.oban.enqueue(Noop.new({"i": number}))

    async def submit_many(self, numbers: range) -> None:
        await self.oban.enqueue_many(Noop.new({"i": number}) for number in numbers)

    async def work(self, probe: Probe) -> None:
        STARTED.append(probe)
        pool = await Oban.create_pool(self.url)
        async with Oban(pool=pool, queues={QUEUE: self.settings}):
            await asyncio.Event().wait()
