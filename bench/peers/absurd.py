"""absurd: stored procedures that workers poll; tasks and their runs are kept."""

from __future__ import annotations

import json
from typing import Any

import absurdctl
from absurd_sdk import AsyncAbsurd

from bench.peers.peer import QUEUE, About, Probe

TASK = "md5('task' || g)::uuid"
RUN = "md5('run' || g)::uuid"
LATER = {"available_at": "now() + interval '1 year'"}


def _rows(prefix: str, **run: str) -> list[tuple[str, dict[str, str]]]:
    task = TASK.replace("'task'", f"'{prefix}t'")
    execution = RUN.replace("'run'", f"'{prefix}r'")
    return [
        (f"absurd.t_{QUEUE}", {"task_id": task, "last_attempt_run": execution}),
        (f"absurd.r_{QUEUE}", {"run_id": execution, "task_id": task, **run}),
    ]


class Queue:
    """It polls; its batch of tasks is a single statement with a function of our own."""

    ABOUT = About(
        distribution="absurd-sdk",
        default={"concurrency": 10, "batch_size": 10, "poll_interval": 0.25},
        fast={"batch_size": 100, "poll_interval": 0.05},
        unfinished=f"SELECT EXISTS (SELECT FROM absurd.r_{QUEUE}"
        " WHERE state IN ('pending', 'running', 'sleeping') AND available_at < now() + '1 day')",
        finished=_rows("finished"),
        waiting=_rows("waiting", **LATER),
        share=(0.2, 0.2),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.app = AsyncAbsurd(url, queue_name=QUEUE)
        self.app.register_task("noop")(self._noop)

    async def prepare(self) -> None:
        await self.open()
        await self.app._conn.execute(absurdctl.BUNDLED_SCHEMA_SQL)
        await self.app.create_queue(QUEUE)

    async def open(self) -> None:
        await self.app._ensure_connected()

    async def submit(self, number: int) -> None:
        await self.app.spawn("noop", {"i": number})

    async def submit_many(self, numbers: range) -> None:
        await self.app._conn.execute(
            "SELECT absurd.spawn_task(%s, 'noop', jsonb_build_object('i', i), %s::jsonb)"
            " FROM generate_series(%s::int, %s::int) AS i",
            (QUEUE, json.dumps({"max_attempts": 5}), numbers.start, numbers.stop - 1),
        )

    async def work(self, probe: Probe) -> None:
        self.probe = probe
        await self.app.start_worker(**self.settings)

    async def _noop(self, params: Any, context: object) -> None:
        self.probe.hit(params["i"])
