"""Blocking client, for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, Unpack

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.attention.attention import ReminderDelay
from draftsman.client.asynchronous import HOUR, Client, Cursor, batch_note, in_batches
from draftsman.client.requests import Fields, JobName, Request
from draftsman.costs.budgets import BudgetUse, Cost
from draftsman.database.caller_connection import CallersConnection
from draftsman.errors import DraftsmanError
from draftsman.events.event import Event
from draftsman.jobs.control.job_message import SentMessage
from draftsman.jobs.control.service.control import CancelResult, PauseResult
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import Job
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Question
from draftsman.queues.queue_models import QueuedJob, QueueSummary
from draftsman.queues.service.queues import Place
from draftsman.queues.usage_limits import LimitUse
from draftsman.schedules.schedule import Fire, Schedule
from draftsman.schedules.template import Template
from draftsman.workflows.dependencies import JobTree
from draftsman.workflows.groups import GroupMember, JobGroup

# Methods of the blocking client about templates and schedules.


T = TypeVar("T")


class BlockingSchedules(ABC):
    """The part of `BlockingClient` that concerns templates and schedules."""

    _client: Client

    @abstractmethod
    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of a call of the client."""

    def templates(self) -> list[Template]:
        """Return the newest version of each template, by name."""
        return self._run(self._client.templates())

    def schedules(self) -> list[Schedule]:
        """Return all schedules, by name."""
        return self._run(self._client.schedules())

    def run_schedule(self, name: str) -> SubmittedJob:
        """Submit the job of a schedule now, beside its occurrences."""
        return self._run(self._client.run_schedule(name))

    def pause_schedule(self, name: str, reason: str | None = None) -> Schedule:
        """Pause a schedule."""
        return self._run(self._client.pause_schedule(name, reason))

    def resume_schedule(self, name: str) -> Schedule:
        """Resume a schedule from its next occurrence on."""
        return self._run(self._client.resume_schedule(name))

    def add_template(self, name: str, *, replace: bool = False, **fields: Any) -> Template:
        """Store a template; with `replace`, an existing one gets a new version if it differs."""
        return self._run(self._client.add_template(name, replace=replace, **fields))

    def remove_template(self, name: str) -> None:
        """Remove a template; its versions are kept for its jobs."""
        self._run(self._client.remove_template(name))

    def add_schedule(
        self,
        name: str,
        rule: str,
        *,
        zone: str = "UTC",
        template: str | None = None,
        params: Mapping[str, Any] | None = None,
        request: Mapping[str, Any] | None = None,
        misfire: Literal["skip", "last", "all"] = "last",
        misfire_limit: int = 10,
        jitter: int = 0,
        overlap: Literal["skip", "queue", "cancel-running"] = "skip",
        replace: bool = False,
    ) -> Schedule:
        """Store a schedule of a template with `params`, or of a `request` of its own."""
        return self._run(
            self._client.add_schedule(
                name,
                rule,
                zone=zone,
                template=template,
                params=params,
                request=request,
                misfire=misfire,
                misfire_limit=misfire_limit,
                jitter=jitter,
                overlap=overlap,
                replace=replace,
            )
        )

    def remove_schedule(self, name: str) -> None:
        """Delete a schedule with its history; its jobs are kept."""
        self._run(self._client.remove_schedule(name))

    def occurrences(self, name: str, count: int = 10) -> list[datetime]:
        """Return the next times of a schedule."""
        return self._run(self._client.occurrences(name, count))

    def schedule_history(self, name: str | None = None, limit: int = 50) -> list[Fire]:
        """Return the past occurrences of a schedule, or of all, newest first."""
        return self._run(self._client.schedule_history(name, limit))


CLOSED: Final = "this client is closed; open a new Draftsman"


class BlockingClient(BlockingSchedules):
    """The blocking form of `Client`, with the same arguments, results and errors.

    It runs an event loop in a thread of its own, so that any thread may call its methods.
    """

    def __init__(self, connection: AbstractAsyncContextManager[Client]) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = False
        self._calls: set[Future[Any]] = set()
        """Pending calls of all threads."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="draftsman-client", daemon=True
        )
        self._thread.start()
        try:
            self._client: Client = self._run(connection.__aenter__())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Disconnect; pending calls of other threads fail."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()
        try:
            closing = self._connection.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(_finish(closing), self._loop).result()
        finally:
            self._stop()

    def submit(
        self,
        text: str | None = None,
        *,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
        reserve: float | None = None,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job, or return the job that was created with the same `key`."""
        return self._run(
            self._client.submit(
                text, connection=connection, unchecked=unchecked, reserve=reserve, **fields
            )
        )

    def submit_many(
        self,
        requests: Iterable[Request],
        *,
        group: str | dict[str, str] | None = None,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
    ) -> list[SubmittedJob]:
        """Create a job for each request, in a single statement."""
        return self._run(
            self._client.submit_many(
                list(requests), group=group, connection=connection, unchecked=unchecked
            )
        )

    def submit_stream(
        self, requests: Iterable[Request], *, unchecked: bool = False
    ) -> Iterator[SubmittedJob]:
        """Create a job for each of any number of requests; yield the jobs in the same order."""
        position = 1
        for batch in in_batches(requests):
            with batch_note(position):
                jobs = self.submit_many(batch, unchecked=unchecked)
            yield from jobs
            position += len(batch)

    def run_template(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        unchecked: bool = False,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job from a template."""
        return self._run(self._client.run_template(name, params, unchecked=unchecked, **fields))

    def get(self, job: JobName) -> Job:
        """Return a job with its status and result."""
        return self._run(self._client.get(job))

    def wait(self, job: JobName, timeout: float | None = None) -> Job:
        """Return a job once it has ended; raises TimeoutError after `timeout` seconds."""
        return self._run(self._client.wait(job, timeout))

    def questions(self, job: JobName | None = None) -> list[Question]:
        """Return the open questions of a job, or of all jobs."""
        return self._run(self._client.questions(job))

    def answer(self, question: str | Question, text: str) -> Verdict:
        """Answer a question with a choice or with free text."""
        return self._run(self._client.answer(question, text))

    def approve(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Approve an approval."""
        return self._run(self._client.approve(question, reason))

    def deny(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Deny an approval."""
        return self._run(self._client.deny(question, reason))

    def acknowledge(self, question: str | Question, seconds: float = HOUR) -> ReminderDelay:
        """Acknowledge a question: others are not notified until then."""
        return self._run(self._client.acknowledge(question, seconds))

    def snooze(self, question: str | Question, seconds: float) -> datetime:
        """Pause your own reminders of a question; return until when."""
        return self._run(self._client.snooze(question, seconds))

    def delegate(self, question: str | Question, person: str, seconds: float = HOUR) -> datetime:
        """Ask another person to answer a question; return until when others are not notified."""
        return self._run(self._client.delegate(question, person, seconds))

    def tell(self, job: JobName, text: str, *, key: str | None = None) -> SentMessage:
        """Send a message to the agent of a job; the same `key` is sent once."""
        return self._run(self._client.tell(job, text, key=key))

    def pause(self, job: JobName, reason: str) -> PauseResult:
        """Pause a job; a running job is parked at its checkpoint."""
        return self._run(self._client.pause(job, reason))

    def resume(self, job: JobName) -> PauseResult:
        """End the pause of a job."""
        return self._run(self._client.resume(job))

    def cancel(
        self, job: JobName, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """Cancel a job."""
        return self._run(self._client.cancel(job, reason, force=force))

    def cancel_tree(self, job: JobName, reason: str | None = None) -> list[CancelResult]:
        """Cancel a job and all that wait for it, directly or not."""
        return self._run(self._client.cancel_tree(job, reason))

    def tree(self, job: JobName) -> JobTree:
        """Return a job and all that wait for it, directly or not."""
        return self._run(self._client.tree(job))

    def groups(self) -> list[JobGroup]:
        """Return the newest groups, with the numbers of their jobs."""
        return self._run(self._client.groups())

    def group(self, name: str) -> JobGroup:
        """Return a group with its state and progress; raises NotFound."""
        return self._run(self._client.group(name))

    def group_members(self, name: str) -> list[GroupMember]:
        """Return the first 1,000 jobs of a group, in order; raises NotFound."""
        return self._run(self._client.group_members(name))

    def cancel_group(self, name: str, reason: str | None = None) -> list[CancelResult]:
        """Cancel the unfinished jobs of a group; those that are added later are canceled too."""
        return self._run(self._client.cancel_group(name, reason))

    def retry(self, job: JobName, *, fresh: bool = False, again: bool = False) -> SubmittedJob:
        """Create a new job from a finished job."""
        return self._run(self._client.retry(job, fresh=fresh, again=again))

    def queues(self) -> list[QueueSummary]:
        """Return the queues that have jobs, a pause, a reservation or a live worker."""
        return self._run(self._client.queues())

    def limits(self) -> list[LimitUse]:
        """Return each configured limit, and each value that has a limit in use, by name."""
        return self._run(self._client.limits())

    def budgets(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name."""
        return self._run(self._client.budgets())

    def costs(self, by: str = "repo", since: float = 7 * 86_400) -> list[Cost]:
        """Return the costs of the last days by repo, person, agent, model or day.

        `since` is in seconds. Raises UsageError.
        """
        return self._run(self._client.costs(by, since))

    def pause_queue(
        self, queue: str, reason: str, *, type: str | None = None, unchecked: bool = False
    ) -> None:
        """Pause a queue, or a type in it."""
        self._run(self._client.pause_queue(queue, reason, type=type, unchecked=unchecked))

    def resume_queue(self, queue: str, *, type: str | None = None) -> None:
        """End a pause."""
        self._run(self._client.resume_queue(queue, type=type))

    def drain_queue(
        self,
        queue: str,
        reason: str = "draining",
        *,
        type: str | None = None,
        timeout: float | None = None,
        unchecked: bool = False,
    ) -> None:
        """Pause a queue, or a type in it, and return once none of its jobs runs."""
        drained = self._client.drain_queue(
            queue, reason, type=type, timeout=timeout, unchecked=unchecked
        )
        self._run(drained)

    def release_queue(self, queue: str) -> None:
        """End the reservation of a queue."""
        self._run(self._client.release_queue(queue))

    def move(self, job: JobName, place: Place, anchor: JobName | None = None) -> None:
        """Move a queued job to the `top` or `bottom`, or `before` or `after` another job."""
        self._run(self._client.move(job, place, anchor))

    def prioritize(self, job: JobName, priority: int) -> None:
        """Change the priority of a waiting job."""
        self._run(self._client.prioritize(job, priority))

    def order(self, limit: int = 50, queue: str | None = None) -> list[QueuedJob]:
        """Return the waiting jobs by queue, those that can be claimed first, in their order."""
        return self._run(self._client.order(limit, queue))

    def why(self, job: JobName) -> WaitReason:
        """Return the reason of the status of a job, and the next step."""
        return self._run(self._client.why(job))

    def events(
        self, job: JobName | None = None, *, after: Event | Cursor | None = None, new: bool = False
    ) -> Iterator[Event]:
        """Yield the events of a job until it has ended, or those of all jobs without end."""
        yield from self._iterate(self._client.events(job, after=after, new=new))

    def activity(self, job: JobName) -> Iterator[ActivityRow]:
        """Yield the activity of the agent of a job until the job has ended."""
        yield from self._iterate(self._client.activity(job))

    def _iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        while (item := self._run(_next(iterator))) is not None:
            try:
                yield item
            except BaseException:
                if not self._closed:
                    self._run(_close(iterator))
                raise

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._closed or not self._thread.is_alive():
                call.close()
                raise DraftsmanError(CLOSED)
            future = asyncio.run_coroutine_threadsafe(call, self._loop)
            self._calls.add(future)
        try:
            return future.result()
        except CancelledError:
            raise DraftsmanError(CLOSED) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._calls.discard(future)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _close(iterator: Any) -> None:
    await iterator.aclose()


async def _finish(closing: Awaitable[Any]) -> None:
    """Wait for the canceled calls, then for the end of the connection."""
    current = asyncio.current_task()
    calls = [task for task in asyncio.all_tasks() if task is not current and task.cancelling()]
    await asyncio.gather(*calls, return_exceptions=True)
    await closing
