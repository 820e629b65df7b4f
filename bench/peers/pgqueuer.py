"""pgqueuer: claims and deletes in batches, keeps a log row for each change."""

from __future__ import annotations

from typing import Any

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver

from bench.peers.peer import SEEDED, About, Probe


class Queue:
    """Its batch is ten by default, and twice as many may run concurrently."""

    ABOUT = About(
        distribution="pgqueuer",
        default={"batch_size": 10, "max_concurrent_tasks": 20},
        fast={"batch_size": 100, "max_concurrent_tasks": 200},
        unfinished=f"SELECT EXISTS (SELECT FROM pgqueuer WHERE id < {SEEDED})",
        finished=[
            ("pgqueuer_log", {"id": f"{n * SEEDED} + g", "job_id": f"{SEEDED} + g"})
            for n in (1, 2, 3)
        ],
        waiting=[
            (
                "pgqueuer",
                {
                    "id": f"{SEEDED} + g",
                    "priority": "-1",
                    "execute_after": "now() + interval '1 year'",
                },
            )
        ],
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.url = url
        self.settings = settings

    async def prepare(self) -> None:
        await self.open()
        await self.queries.install()

    async def open(self) -> None:
        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(self.url)))

    async def submit(self, number: int) -> None:
        await self.queries.enqueue("noop", b"%d" % number)

    async def submit_many(self, numbers: range) -> None:
        count = len(numbers)
        payloads = [b"%d" % number for number in numbers]
        await self.queries.enqueue(["noop"] * count, payloads, [0] * count)

    async def work(self, probe: Probe) -> None:
        app = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.url)))

        @app.entrypoint("noop")
        async def noop(job: Any) -> None:
            probe.hit(int(job.payload))

        await app.run(**self.settings)
