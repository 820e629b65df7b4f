"""Calls of runs that spawn and gather jobs, from two processes whose connections may break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from draftsman.jobs.runs.run import ClaimedJob
from draftsman.runtime import Runtime
from tests.core.stateful.model.queues import Request
from tests.core.stateful.model.workflows import ATTEMPTS
from tests.core.stateful.queue_driver import OWNER, QueueDriver
from tests.core.stateful.world import QUEUES, TYPES


class FanOutDriver(QueueDriver):
    """Runs that spawn jobs, and that are parked until all of them have ended."""

    submit: Callable[..., None]
    claim: Callable[..., None]
    end: Callable[..., None]

    def fan_out(self, n: int, children: list[Request], gather: bool, lost: bool) -> None:
        """Spawn jobs under the same keys in each run of a job, and gather them."""
        work = self._choose(n, lost)
        if work is None:
            return
        self._spawn_again(work, children)
        if gather and (lost or work.number in self.works):
            self._gather(work)

    def start_fan_out(self, worker: int, free: int, first: int, children: list[Request]) -> None:
        """Start a job that spawns jobs, and is parked until they have ended."""
        request = Request(QUEUES[first], TYPES[0], 5, None, "resume")
        self.submit([request], "apart", [], "success", None, 0)
        self.agrees()
        self.claim(worker, free, first)
        self.agrees()
        self.fan_out(2 * (len(self.works) - 1), children, gather=True, lost=False)

    def retry_fan_out(self, worker: int, first: int, children: list[Request]) -> None:
        """Fail a job after one that it has spawned has completed, and let its retry spawn again."""
        children = [item._replace(queue=QUEUES[first], priority=5) for item in children]
        self.submit([children[0]], "apart", [], "success", None, 0)
        parent = max(job.number for job in self.model.jobs)
        self._claim_all(worker, first)
        if parent not in self.works:
            return
        self._spawn_again(self.works[parent], children)
        self._claim_all(worker, first)
        child = self.model.spawned.get(parent, {}).get("part 0")
        for number, how in ((child, "completed"), (parent, "failed")):
            if number in self.works:
                self.end(sorted(self.works).index(number), how)
                self.agrees()
        self.both(
            lambda new: self.model.retry(parent, new),
            lambda rt: rt.job_control.retry(parent, OWNER),
            0,
        )
        self._claim_all(worker, first)
        if (work := self.works.get(self.model.job(parent).retry or 0)) is not None:
            self._spawn_again(work, children)

    def _claim_all(self, worker: int, first: int) -> None:
        self.agrees()
        self.claim(worker, 9, first)
        self.agrees()

    def _spawn_again(self, work: ClaimedJob, children: list[Request]) -> None:
        for index, request in enumerate(children):
            self._spawn(work, f"part {index}", request)
            self.agrees()

    def gather(self, n: int, lost: bool) -> None:
        """Gather the jobs that earlier runs of a job have spawned."""
        if (work := self._choose(n, lost)) is not None:
            self._gather(work)

    def _choose(self, n: int, lost: bool) -> ClaimedJob | None:
        works = self.lost if lost else [self.works[number] for number in sorted(self.works)]
        spawning = [work for work in works if work.number in self.model.spawned]
        works = spawning if spawning and n % 2 else works
        return works[n // 2 % len(works)] if works else None

    def _spawn(self, work: ClaimedJob, key: str, request: Request) -> None:
        fields: dict[str, Any] = {
            "queue": request.queue,
            "priority": request.priority,
            "concurrency_key": request.key,
            "on_lost": request.on_lost,
            "repo": request.repo and f"https://{request.repo}",
            "max_attempts": ATTEMPTS,
        }
        if request.repo:
            self.cut = None  # the first connection looks up repositories
        expected: list[int | str] = []

        def model(new: list[int]) -> str | None:
            if not self._owned(work):
                return "LeaseLost"
            expected.append(self.model.spawn(work.number, key, request, new))
            return expected[0] if isinstance(expected[0], str) else None

        number = self.both(
            model,
            lambda rt: rt.workflows.spawn(work, key, request.type, fields),
            0,
        )
        assert number is None or [number] == expected

    def _gather(self, work: ClaimedJob) -> None:
        children = list(self.model.spawned.get(work.number, {}).values())
        expected: list[list[tuple[int, str]] | None] = []

        async def real(rt: Runtime) -> list[tuple[int, str]] | None:
            ended = await rt.workflows.gather(work, children)
            return None if ended is None else [(item.number, str(item.status)) for item in ended]

        def model(_: list[int]) -> str | None:
            if not self._owned(work):
                return "LeaseLost"
            expected.append(self.model.gather(work.number, children))
            return None

        ended = self.both(model, real, 0)
        assert ended is None or [ended] == expected

    def _owned(self, work: ClaimedJob) -> bool:
        return self.works.get(work.number) is work
