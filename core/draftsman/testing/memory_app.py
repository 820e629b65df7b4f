"""Tests of declared job types in memory: what was submitted runs when the test says so.

def test_report(draftsman_app):
weekly.submit(week=31)
draftsman_app.answers["send"] = "yes"
draftsman_app.drain()
assert draftsman_app.jobs[0].result == {"value": "sent"}
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from draftsman.client.requests import Request
from draftsman.handlers.batches import BatchEntry, BatchHandler
from draftsman.handlers.handler_errors import handler_failure
from draftsman.handlers.registry import Handler
from draftsman.job_types import declaration
from draftsman.jobs.job import Condition, Status
from draftsman.jobs.requests.invocation import PAYLOAD_VERSION
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.jobs.runs.outcome import Cancel, Done
from draftsman.people.policy import Person
from draftsman.settings import Settings
from draftsman.testing.drained_app import MAX_JOBS, AppJob, DrainedApp, too_many, undeclared
from draftsman.testing.handler_runs import PERSON, Clock, Memory, run_in_memory
from draftsman.workflows.dependencies import Parent


class MemoryApp(DrainedApp):
    """The jobs of a test in memory, without a database and a worker."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = Clock()
        self._jobs: list[AppJob] = []

    @property
    def jobs(self) -> list[AppJob]:
        return self._jobs

    @property
    def now(self) -> datetime:
        return self._clock.now

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def drain(self) -> list[AppJob]:
        return asyncio.run(self.drain_async())

    async def drain_async(self) -> list[AppJob]:
        ran: list[AppJob] = []
        while (job := self._next()) is not None:
            if len(ran) >= MAX_JOBS:
                raise too_many()
            ran += await self._run_batch(job)
        return ran

    def submit_many(
        self, requests: Sequence[Request], *, connection: Any = None
    ) -> list[SubmittedJob]:
        return [self._submit(request) for request in requests]

    # What a run does with its spawned jobs.

    async def spawn(self, key: str, type: str, fields: Mapping[str, Any]) -> int:
        """Add a job of a run."""
        return self._submit(cast(Request, {"type": type, **fields})).number

    async def ended(self, numbers: Sequence[int]) -> list[Parent]:
        """Run these jobs; return them."""
        jobs = [self._jobs[number - 1] for number in numbers]
        for job in jobs:
            if job.status is Status.QUEUED:
                await self._run(job, self._handler(job.type))
        return [_parent(job) for job in jobs]

    def _submit(self, request: Request) -> SubmittedJob:
        key = request.get("key")
        for job in self._jobs if key is not None else ():
            if (job.type, job.key) == (request["type"], key):
                return SubmittedJob(job.number, UUID(int=job.number), job.status, "deduplicated")
        number = len(self._jobs) + 1
        delay = timedelta(seconds=request.get("delay", 0))
        self._jobs.append(
            AppJob(
                number=number,
                type=request["type"],
                payload=request.get("payload", {}),
                payload_version=request.get("payload_version", 1),
                title=request.get("title"),
                key=key,
                due=request.get("run_at", self.now + delay),
            )
        )
        return SubmittedJob(number, UUID(int=number), Status.QUEUED, "created")

    def _next(self) -> AppJob | None:
        return next(iter(self._due()), None)

    def _due(self) -> list[AppJob]:
        """Return the jobs that are due, in the order in which they run."""
        due = [job for job in self._jobs if job.status is Status.QUEUED and job.due <= self.now]
        return sorted(due, key=lambda job: (job.due, job.number))

    def _handler(self, type: str) -> Handler:
        if (declared := declaration.declared_types.get(type)) is None:
            raise undeclared(type)
        return declared.handler()

    async def _run_batch(self, first: AppJob) -> list[AppJob]:
        """Run a job, with those of its type that are due if they run in batches; return them."""
        handler = self._handler(first.type)
        if not isinstance(handler, BatchHandler):
            await self._run(first, handler)
            return [first]
        batch = handler.open()
        jobs = [job for job in self._due() if job.type == first.type][: batch.room]
        entries = [batch.add() for _ in jobs]
        batch.close()
        await asyncio.gather(*map(self._run, jobs, entries))
        return jobs

    async def _run(self, job: AppJob, handler: Handler) -> None:
        people = {PERSON: Person(PERSON, frozenset())}
        memory = Memory(self.answers, set(), self._clock, [], people, jobs=self)
        columns = {
            "type": job.type,
            "title": job.title or job.type,
            "overrides": {PAYLOAD_VERSION: job.payload_version},
        }
        try:
            outcome = await run_in_memory(handler, memory, Settings(), job.payload, columns)
        except AssertionError:
            raise
        except Exception as error:
            job.status = Status.FAILED
            job.last_error = str(handler_failure(error, handler.__module__))
            return
        finally:
            job.questions = memory.asked
            job.steps = memory.results
            job.log = memory.collected.log
            if isinstance(handler, BatchEntry):
                handler.leave()
        match outcome:
            case Done(result):
                job.status = Status.COMPLETED
                job.result = result
            case Cancel(reason):
                job.status = Status.CANCELED
                job.last_error = reason


def _parent(job: AppJob) -> Parent:
    return Parent(
        number=job.number,
        condition=Condition.SUCCESS,
        met=job.status is Status.COMPLETED,
        status=job.status,
        type=job.type,
        title=job.title,
        result=job.result,
        error=job.last_error,
    )
