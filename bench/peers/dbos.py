"""dbos: durable workflows with polled queues."""

from __future__ import annotations

import asyncio
from typing import Any

from dbos import DBOS, DBOSClient

from bench.peers.peer import QUEUE, About, Probe

RELEASE = "bench"
LATER = {
    "workflow_uuid": "'waiting' || g",
    "status": "'DELAYED'",
    "delay_until_epoch_ms": "extract(epoch FROM now() + interval '1 year') * 1000",
}


class Queue:
    """It has no batches: eight submissions run concurrently. It promises more than a queue."""

    ABOUT = About(
        distribution="dbos",
        default={"worker_concurrency": 10, "polling_interval_sec": 1.0},
        fast={"worker_concurrency": 100, "polling_interval_sec": 0.05},
        unfinished="SELECT EXISTS (SELECT FROM dbos.workflow_status"
        f" WHERE queue_name = '{QUEUE}' AND status IN ('ENQUEUED', 'PENDING'))",
        finished=[("dbos.workflow_status", {"workflow_uuid": "'finished' || g"})],
        waiting=[("dbos.workflow_status", LATER)],
        share=(0.01, 0.2),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.url = url
        self.settings = settings

    async def prepare(self) -> None:
        self._launch()

    async def open(self) -> None:
        self.client = DBOSClient(system_database_url=self.url)

    async def submit(self, number: int) -> None:
        where = {"queue_name": QUEUE, "workflow_name": "noop", "app_version": RELEASE}
        await self.client.enqueue_async(where, number)

    async def submit_many(self, numbers: range) -> None:
        left = iter(numbers)

        async def some() -> None:
            for number in left:
                await self.submit(number)

        await asyncio.gather(*(some() for _ in range(8)))

    async def work(self, probe: Probe) -> None:
        self.probe = probe
        self._launch()
        await DBOS.register_queue_async(QUEUE, on_conflict="always_update", **self.settings)
        await asyncio.Event().wait()

    def _launch(self) -> None:
        DBOS(
            config={
                "name": "bench",
                "system_database_url": self.url,
                "log_level": "ERROR",
                "application_version": RELEASE,
                "executor_id": "bench",
            }
        )

        @DBOS.workflow(name="noop")
        async def noop(i: int) -> None:
            self.probe.hit(i)

        DBOS.launch()
