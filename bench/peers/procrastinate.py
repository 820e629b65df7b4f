"""procrastinate: fetches and finishes jobs individually, writes events with row triggers."""

from __future__ import annotations

from typing import Any

from procrastinate import App, PsycopgConnector

from bench.peers.peer import QUEUE, SEEDED, About, Probe


class Queue:
    """It has no setting for batches, so fast equals default."""

    ABOUT = About(
        distribution="procrastinate",
        default={"concurrency": 10},
        fast={},
        unfinished="SELECT EXISTS (SELECT FROM procrastinate_jobs"
        f" WHERE id < {SEEDED} AND status IN ('todo', 'doing'))",
        finished=[
            ("procrastinate_jobs", {"id": f"{SEEDED} + g"}),
            *(
                ("procrastinate_events", {"id": f"{n * SEEDED} + g", "job_id": f"{SEEDED} + g"})
                for n in (1, 2, 3)
            ),
        ],
        waiting=[
            (
                "procrastinate_jobs",
                {"id": f"{2 * SEEDED} + g", "scheduled_at": "now() + interval '1 year'"},
            )
        ],
        functions=("loop", "thread"),
        share=(0.2, 0.2),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        function = settings.pop("function", "loop")
        self.settings = settings
        slots = settings["concurrency"]
        self.app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=slots + 2))
        work = self._noop if function == "loop" else self._blocking_noop
        self.noop = self.app.task(work, name="noop", queue=QUEUE)

    async def prepare(self) -> None:
        async with self.app.open_async():
            await self.app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await self.app.open_async()

    async def submit(self, number: int) -> None:
        await self.noop.defer_async(i=number)

    async def submit_many(self, numbers: range) -> None:
        await self.noop.batch_defer_async(*({"i": number} for number in numbers))

    async def work(self, probe: Probe) -> None:
        self.probe = probe
        async with self.app.open_async():
            await self.app.run_worker_async(
                queues=[QUEUE], install_signal_handlers=False, **self.settings
            )

    async def _noop(self, i: int) -> None:
        self.probe.hit(i)

    def _blocking_noop(self, i: int) -> None:
        self.probe.hit(i)
