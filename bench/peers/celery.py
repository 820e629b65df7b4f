"""Celery on Redis: nothing of a job is kept; its pools are solo, threads and prefork.

The worker counts tasks as their pool accepts them: those of a pool of processes start elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any

from celery import Celery
from celery.worker.request import Request

from bench.peers.peer import QUEUE, About, Probe

REDIS = "BENCH_REDIS"
"""The URL of the Redis of the bench."""
POOLS = {"loop": "solo", "thread": "threads", "process": "prefork"}
probe: Probe


class CountedRequest(Request):
    """A task whose start is counted in the worker."""

    def on_accepted(self, pid: int, time_accepted: float) -> None:
        probe.hit(0)
        super().on_accepted(pid, time_accepted)


app = Celery("bench", broker=os.environ.get(REDIS, "memory://"))
app.conf.task_ignore_result = True
app.conf.task_default_queue = QUEUE


@app.task(name="noop", Request="bench.peers.celery:CountedRequest")
def noop(i: int) -> None:
    """Do nothing."""


class Queue:
    """Its concurrency is the number of slots; without an acknowledgment after the run."""

    ABOUT = About(
        distribution="celery",
        default={"concurrency": 10},
        fast={},
        unfinished="SELECT false",
        functions=("loop", "thread", "process"),
        keeps_nothing=True,
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.pool = POOLS[settings.get("function", "loop")]
        self.concurrency = settings["concurrency"]

    async def prepare(self) -> None:
        pass

    async def open(self) -> None:
        app.control.purge()

    async def submit(self, number: int) -> None:
        noop.delay(number)

    async def submit_many(self, numbers: range) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for number in numbers:
                noop.apply_async((number,), producer=producer)

    async def work(self, counting: Probe) -> None:
        global probe
        probe = counting
        logging.disable(logging.CRITICAL)
        worker = app.WorkController(
            app=app, pool_cls=self.pool, concurrency=self.concurrency, hostname="bench@localhost"
        )
        thread = threading.Thread(target=worker.start, daemon=True)
        thread.start()
        try:
            await asyncio.to_thread(thread.join)
        finally:
            worker.stop()
