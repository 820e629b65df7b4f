"""Tests of declared job types in memory: what was submitted runs when the test says so.

def test_report(draftsman_app):
weekly.submit(week=31)
draftsman_app.answers["send"] = "yes"
draftsman_app.drain()
assert draftsman_app.jobs[0].result == {"value": "sent"}
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from draftsman.client.blocking import BlockingClient
from draftsman.client.requests import Request
from draftsman.handlers.handler_errors import handler_failure
from draftsman.ids import job_name
from draftsman.job_types import declaration
from draftsman.job_types.declaration import JobType
from draftsman.job_types.submission import process_client
from draftsman.jobs.job import Condition, Status
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.jobs.runs.outcome import Cancel, Done
from draftsman.testing.handler_runs import Clock, Deny, HandlerResult, run_handler
from draftsman.workflows.dependencies import Parent

MAX_JOBS: Final = 10_000
"""Jobs that one `drain` runs at most: jobs may submit others without end."""


@dataclass(slots=True)
class MemoryJob:
    """A job of a test."""

    number: int
    type: str
    payload: dict[str, Any]
    request: Request
    """All fields of its request."""
    due: datetime
    status: Status = Status.QUEUED
    result: dict[str, Any] | None = None
    last_error: str | None = None
    ran: HandlerResult | None = None
    """Its questions, steps, messages and log, once it ran."""

    @property
    def name(self) -> str:
        """The display name, such as `D-1`."""
        return job_name(self.number)


@dataclass(slots=True)
class MemoryApp:
    """The jobs of a test, in memory: `submit` of a declared type adds one, `drain` runs them.

    `answers` maps the key of a question to its answer, as for `run_handler`, and `secrets` the name
    of a secret to its value. Jobs with a `delay` or `run_at` wait until `advance` has moved the
    clock.
    """

    answers: dict[str, str | bool | Deny | None] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    jobs: list[MemoryJob] = field(default_factory=list)
    """All jobs, in the order of their submission."""

    def advance(self, seconds: float) -> None:
        """Move the clock forward; `drain` then runs what is due."""
        self.clock.advance(seconds)

    def drain(self) -> list[MemoryJob]:
        """Run all jobs that are due, and those that they submit; return them.

        An error of a job fails that job: see its `last_error`. Raises AssertionError for a question
        without an entry in `answers`, and for a type that no imported module declares.
        """
        return asyncio.run(self.drain_async())

    async def drain_async(self) -> list[MemoryJob]:
        """Run the jobs as `drain` does, in a test that is a coroutine."""
        ran: list[MemoryJob] = []
        while (job := self._next()) is not None:
            if len(ran) == MAX_JOBS:
                raise AssertionError(f"{MAX_JOBS} jobs ran; do they submit each other?")
            await self._run(job)
            ran.append(job)
        return ran

    def submitted(self, type: JobType[Any, Any] | str) -> list[dict[str, Any]]:
        """Return the payloads of the jobs of a type, in the order of their submission."""
        name = type if isinstance(type, str) else type.name
        return [job.payload for job in self.jobs if job.type == name]

    def asked(self) -> list[str]:
        """Return the texts of all questions that were asked, in their order."""
        return [item.text for job in self.jobs if job.ran for item in job.ran.questions]

    # What a client does, for `submit` and `result` of declared types.

    def submit_many(
        self, requests: Sequence[Request], *, connection: object = None
    ) -> list[SubmittedJob]:
        """Add a job for each request; one with a `key` only once."""
        return [self._submit(request) for request in requests]

    def wait(self, job: SubmittedJob, timeout: float | None = None) -> MemoryJob:
        """Run the jobs that are due; return this one. Raises TimeoutError if it is not due."""
        self.drain()
        found = self._find(job.number)
        if found.status is Status.QUEUED:
            raise TimeoutError(f"{found.name} is due at {found.due}; advance the clock")
        return found

    # What a run does with its spawned jobs.

    async def spawn(self, key: str, type: str, fields: Mapping[str, Any]) -> int:
        """Add a job of a run."""
        return self._submit(cast(Request, {"type": type, **fields})).number

    async def ended(self, numbers: Sequence[int]) -> list[Parent]:
        """Run these jobs; return them."""
        jobs = [self._find(number) for number in numbers]
        for job in jobs:
            if job.status is Status.QUEUED:
                await self._run(job)
        return [_parent(job) for job in jobs]

    def _submit(self, request: Request) -> SubmittedJob:
        key = request.get("key")
        for job in self.jobs if key is not None else ():
            if job.request.get("key") == key:
                return SubmittedJob(job.number, UUID(int=job.number), job.status, "deduplicated")
        number = len(self.jobs) + 1
        delay = timedelta(seconds=request.get("delay", 0))
        due = request.get("run_at", self.clock.now + delay)
        payload = request.get("payload", {})
        self.jobs.append(MemoryJob(number, request["type"], payload, request, due))
        return SubmittedJob(number, UUID(int=number), Status.QUEUED, "created")

    def _next(self) -> MemoryJob | None:
        due = (
            job for job in self.jobs if job.status is Status.QUEUED and job.due <= self.clock.now
        )
        return min(due, key=lambda job: (job.due, job.number), default=None)

    def _find(self, number: int) -> MemoryJob:
        return self.jobs[number - 1]

    async def _run(self, job: MemoryJob) -> None:
        declared = declaration.declared_types.get(job.type)
        if declared is None:
            raise AssertionError(f"no imported module declares the type {job.type}")
        title = job.request.get("title")
        try:
            job.ran = await run_handler(
                declared.handler(),
                job.payload,
                answers=self.answers,
                clock=self.clock,
                jobs=self,
                secrets=self.secrets,
                type=job.type,
                ticket_title=title,
            )
        except AssertionError:
            raise
        except Exception as error:
            job.status = Status.FAILED
            job.last_error = str(handler_failure(error, declared.function.__module__))
            return
        match job.ran.outcome:
            case Done(result):
                job.status = Status.COMPLETED
                job.result = result
            case Cancel(reason):
                job.status = Status.CANCELED
                job.last_error = reason


@contextmanager
def memory_app() -> Iterator[MemoryApp]:
    """Let `submit` and `result` of declared types use an app in memory, inside the block."""
    app = MemoryApp()
    with process_client.replaced(cast(BlockingClient, app)):
        yield app


def _parent(job: MemoryJob) -> Parent:
    return Parent(
        number=job.number,
        condition=Condition.SUCCESS,
        met=job.status is Status.COMPLETED,
        status=job.status,
        type=job.type,
        title=job.request.get("title"),
        result=job.result,
        error=job.last_error,
    )
