"""Tests of declared job types by a worker, on a database of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from draftsman.client.asynchronous import Client
from draftsman.client.loop_thread import LoopThread
from draftsman.client.requests import Request
from draftsman.database.database import Database
from draftsman.errors import UsageError
from draftsman.handlers import registry
from draftsman.job_types import declaration
from draftsman.job_types.app import descriptions_of, handlers_of, with_limits
from draftsman.job_types.payload_version import payload_version
from draftsman.jobs.job import WAITING, Job, Source, Status
from draftsman.jobs.job_summary import JobSummary
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.jobs.reserved_names import RESERVED_KEYS
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import in_due_order
from draftsman.people.actor import Actor
from draftsman.questions.question import OpenQuestion
from draftsman.questions.response import Response
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman.testing.databases import set_clock
from draftsman.testing.drained_app import MAX_JOBS, AppJob, DrainedApp, too_many, undeclared
from draftsman.testing.handler_runs import (
    PERSON,
    handler_steps,
    in_order_of_answers,
    reply_to,
    response_of,
    unfit,
)

T = TypeVar("T")
POLL: Final = 0.02
"""Seconds between two looks at the jobs that run."""
LATER: Final = 0.01
"""Seconds by which the clock passes a due time."""
FAST: Final[dict[str, Any]] = {"drain": 0, "abort": 5, "poll": 0.5}
ROLES: Final = ("invoker", "responder", "approver", "operator")
PEOPLE: Final = {name: {"roles": ROLES} for name in (PERSON, "tester-2", "tester-3")}
ACTIVE: Final = frozenset({Status.CLAIMED, Status.RUNNING, Status.RESUMED})


class WorkerApp(DrainedApp):
    """The jobs of a test on a database, which a worker runs while it is drained.

    Everything is as in production, except for the clock: `drain` moves it over sleeps, the delays
    of retries, and the time of a question whose answer is None.
    """

    def __init__(self, url: str, data_dir: Path, tables: Mapping[str, Any] | None = None) -> None:
        """`tables` are those of the configuration, such as `people` and `groups`."""
        super().__init__()
        self._url = url
        values = {"people": PEOPLE, **(tables or {}), "database_url": url, "data_dir": data_dir}
        values["worker"] = {**values.get("worker", {}), **FAST}
        self._settings = settings_model().model_validate(values)
        self._offset = 0.0
        self._loop: LoopThread | None = None

    def __enter__(self) -> Self:
        self._loop = LoopThread(self._connected())
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    @property
    def jobs(self) -> list[AppJob]:
        return self._call(self._read_jobs)

    @property
    def now(self) -> datetime:
        return self._call(lambda rt: rt.checkpoints.now())

    def advance(self, seconds: float) -> None:
        self._call(lambda rt: self._advance(rt.db, seconds))

    def drain(self) -> list[AppJob]:
        return self._call(self._drain)

    async def drain_async(self) -> list[AppJob]:
        return await asyncio.to_thread(self.drain)

    def submit_many(
        self, requests: Sequence[Request], *, connection: Any = None
    ) -> list[SubmittedJob]:
        return self._call(lambda rt: Client(rt).submit_many(requests, connection=connection))

    # In the loop of its thread.

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        self._db = Database(self._url, self._settings.database, enums=ENUMS)
        await self._db.open()
        try:
            yield Client(self._runtime())
        finally:
            await self._db.close()

    def _runtime(self) -> Runtime:
        """Return services with the limits of what is declared by now."""
        settings: Settings = with_limits(self._settings, declaration.declared_types)
        return wire(settings, self._db, embedded=True)

    def _call(self, work: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
        if self._loop is None:
            raise UsageError("this app is not open; use `with`")
        return self._loop._run(self._with_runtime(work))

    async def _with_runtime(self, work: Callable[[Runtime], Awaitable[T]]) -> T:
        rt = self._runtime()
        try:
            return await work(rt)
        finally:
            await rt.schemas.close()

    async def _advance(self, db: Database, seconds: float) -> None:
        """Move the clock of all sessions: open ones are replaced."""
        self._offset += seconds
        await asyncio.to_thread(set_clock, self._url, self._offset)
        await db.close()
        await db.open()

    async def _drain(self, rt: Runtime) -> list[AppJob]:
        before = {job.number: job.run_count for job in await _all_jobs(rt)}
        while True:
            queues = await self._queues(rt)
            async with self._worker(rt, queues) as running:
                await self._work(rt, queues, running)
            if await self._queues(rt) != queues:
                continue
            if (wait := await self._next_wait(rt)) is None:
                break
            await self._advance(rt.db, wait + LATER)
        began = {
            job.number for job in await _all_jobs(rt) if job.run_count > before.get(job.number, 0)
        }
        return [job for job in await self._read_jobs(rt) if job.number in began]

    async def _queues(self, rt: Runtime) -> set[str]:
        declared = {type.queue for type in declaration.declared_types.values()}
        jobs = {job.queue for job in await _all_jobs(rt)}
        return jobs | {queue or "default" for queue in declared} | {"default"}

    @asynccontextmanager
    async def _worker(self, rt: Runtime, queues: set[str]) -> AsyncIterator[asyncio.Task[None]]:
        types = declaration.declared_types
        process = rt.worker_process(
            registry.load({}) | handlers_of(types, {}),
            queues=sorted(queues),
            leader=False,
            described=descriptions_of(types),
        )
        running = asyncio.create_task(process.run())
        try:
            while not (process.registered or running.done()):  # noqa: ASYNC110
                await asyncio.sleep(POLL)
            await rt.declared_schedules.apply(LeaderTerm())
            yield running
        finally:
            process.stop.set()
            await running

    async def _work(self, rt: Runtime, queues: set[str], running: asyncio.Task[None]) -> None:
        """Return once no job of these queues can run; answer the questions meanwhile."""
        while not running.done():
            jobs = await _all_jobs(rt)
            if len(jobs) > MAX_JOBS:
                raise too_many()
            for job in jobs:
                if job.status is Status.QUEUED and job.type not in _known_types():
                    raise undeclared(job.type)
            if any(_may_run(job) and job.queue in queues for job in jobs):
                await asyncio.sleep(POLL)
            elif not await self._answer(rt, jobs) and not await _sweep(rt):
                return

    async def _answer(self, rt: Runtime, jobs: Sequence[JobSummary]) -> bool:
        """Answer the first open question that has an answer; return whether there was one."""
        waiting = [job.number for job in jobs if job.status in WAITING]
        questions = await rt.questions.open_of(waiting) if waiting else []
        for question in in_order_of_answers(questions, self.answers):
            value = reply_to(question, self.answers)
            if value is not None:
                await _respond(rt, question, response_of(question, value))
                return True
        return False

    async def _next_wait(self, rt: Runtime) -> float | None:
        """Return the seconds until the next job that began goes on; None if nothing will."""
        jobs = await _all_jobs(rt)
        waits = [
            job.due_in
            for job in jobs
            if job.status in (Status.SCHEDULED, Status.RETRYING) and job.run_count and job.due_in
        ]
        waiting = [job.number for job in jobs if job.status in WAITING]
        now = await rt.checkpoints.now()
        waits += [
            (question.expires_at - now).total_seconds()
            for question in (await rt.questions.open_of(waiting) if waiting else ())
            if question.expires_at is not None
        ]
        return min(waits, default=None)

    async def _read_jobs(self, rt: Runtime) -> list[AppJob]:
        numbers = sorted(job.number for job in await _all_jobs(rt))
        return [await _read_job(rt, await rt.read_model.job(number)) for number in numbers]


async def _all_jobs(rt: Runtime) -> list[JobSummary]:
    return await rt.read_model.jobs(limit=MAX_JOBS + 1)


def _known_types() -> set[str]:
    return {*registry.BUILT_IN, *declaration.declared_types}


def _may_run(job: JobSummary) -> bool:
    """Return whether a job runs, or a worker is about to claim it."""
    is_claimable = job.status is Status.QUEUED and job.hold is None and not job.job_paused
    return is_claimable or job.status in ACTIVE


async def _respond(rt: Runtime, question: OpenQuestion, response: Response) -> None:
    """Answer as one person after the other, until that resolves the question."""
    for name in sorted(rt.policy.approvers(question.approvers)) or [PERSON]:
        actor = Actor(Source.API, name, name, person=name, owner=True)
        event = {"source_event_id": f"{response.source_event_id}:{name}"}
        try:
            verdict = await rt.questions.answer(
                question.job, question.ordinal, response.model_copy(update=event), actor
            )
        except UsageError as error:
            raise unfit(question, error) from None
        if not verdict.accepted:
            raise unfit(question, verdict.reason)
        if verdict.resolved:
            return


async def _sweep(rt: Runtime) -> bool:
    """Do what the leader does when something is due; return whether that changed anything."""
    changed = [await sweep.run(LeaderTerm()) for sweep in in_due_order(rt.sweeps.all)]
    return any(changed)


async def _read_job(rt: Runtime, job: Job) -> AppJob:
    key = job.idempotency_key
    questions, _ = await rt.questions.of_job(job.number)
    chunks = await rt.checkpoints.log_end(job.number)
    return AppJob(
        number=job.number,
        type=job.type,
        payload=job.payload,
        payload_version=payload_version(job.overrides),
        title=job.own_title,
        key=None if key.startswith(RESERVED_KEYS) else key,
        due=job.next_retry_at or job.run_at or job.created_at,
        status=job.status,
        result=job.result,
        last_error=job.last_error or job.cancel_reason,
        questions=questions,
        steps=handler_steps(await rt.checkpoints.steps(job.number)),
        log="".join(chunk.text for chunk in chunks),
    )
