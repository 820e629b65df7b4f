"""Asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, Unpack, cast
from uuid import UUID, uuid4

from draftsman.actions.action import Call
from draftsman.actions.questions import AnswerRefused, request_changes
from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.attention.attention import ReminderDelay
from draftsman.client.requests import Fields, JobName, Request
from draftsman.costs.budgets import BudgetUse, Cost
from draftsman.database.caller_connection import CallersConnection
from draftsman.deliveries.documents.document import local_text
from draftsman.deliveries.question_text import refusal_text
from draftsman.errors import Conflict, QuestionClosed, Refused, UsageError
from draftsman.events.event import Event
from draftsman.ids import job_name, parse_job, parse_question
from draftsman.jobs.control.job_message import SentMessage
from draftsman.jobs.control.service.control import CancelResult, DismissResult, PauseResult
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import TERMINAL, Job, Source
from draftsman.jobs.job_summary import JobFilters, JobSummary
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.payload_batch import payload_batch
from draftsman.jobs.requests.service.request_checks import build_request, require_instructions
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.jobs.runs.saved_data import Artifact, LogChunk
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision, Question
from draftsman.questions.response import Response
from draftsman.queues.queue_models import QueuedJob, QueueSummary
from draftsman.queues.service.queues import Place
from draftsman.queues.usage_limits import LimitUse
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import Fire, Misfire, Overlap, Schedule, ScheduleSpec
from draftsman.schedules.template import Template, define
from draftsman.workflows.dependencies import JobTree
from draftsman.workflows.groups import GroupMember, JobGroup

# Batches of requests of the client.


BATCH: Final = 1000
"""Requests that `submit_stream` submits in one statement."""


@contextmanager
def batch_note(position: int) -> Iterator[None]:
    """Note on an error which request is the first of its batch."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the batch that starts with request {position}; earlier jobs exist")
        raise


def in_batches(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Yield lists of BATCH requests."""
    remaining = iter(requests)
    while batch := list(islice(remaining, BATCH)):
        yield batch


async def batches(
    requests: Iterable[Request] | AsyncIterable[Request],
) -> AsyncIterator[list[Request]]:
    """Yield lists of BATCH requests, read as they are needed."""
    if isinstance(requests, Iterable):
        for batch in in_batches(requests):
            yield batch
        return
    batch = []
    async for request in requests:
        batch.append(request)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


# Methods of the client about queues, limits and budgets.


class QueueClient:
    """The part of `Client` that concerns more than a job."""

    def __init__(self, runtime: Runtime) -> None:
        self._rt = runtime

    async def queues(self) -> list[QueueSummary]:
        """Return the queues that have jobs, a pause, a reservation or a live worker."""
        return await self._rt.queues.all()

    async def limits(self) -> list[LimitUse]:
        """Return each configured limit, and each value that has a limit in use, by name."""
        return await self._rt.queues.limits()

    async def budgets(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name."""
        return await self._rt.budgets.uses()

    async def costs(self, by: str = "repo", since: float = 7 * 86_400) -> list[Cost]:
        """Return the costs of the last days by repo, person, agent, model or day.

        `since` is in seconds. Raises UsageError.
        """
        return await self._rt.budgets.costs(by, since)

    async def pause_queue(
        self, queue: str, reason: str, *, type: str | None = None, unchecked: bool = False
    ) -> None:
        """Pause a queue, or a type in it; raises Refused if it is paused.

        Raises NotFound or UsageError if the queue or the type is not known, unless `unchecked`.
        """
        actor = await self._rt.actor(Source.API)
        if not unchecked:
            await self._rt.queues.require_known(queue, type, actor, self._rt.request_checks)
        await self._rt.queues.pause(queue, actor, reason, type)

    async def resume_queue(self, queue: str, *, type: str | None = None) -> None:
        """End a pause; raises Refused if the queue or type is not paused."""
        await self._rt.queues.resume(queue, await self._rt.actor(Source.API), type)

    async def drain_queue(
        self,
        queue: str,
        reason: str = "draining",
        *,
        type: str | None = None,
        timeout: float | None = None,
        unchecked: bool = False,
    ) -> None:
        """Pause a queue, or a type in it, and return once none of its jobs runs.

        Raises TimeoutError after `timeout` seconds; the queue stays paused. Unknown names are
        refused as by `pause_queue`.
        """
        actor = await self._rt.actor(Source.API)
        if not unchecked:
            await self._rt.queues.require_known(queue, type, actor, self._rt.request_checks)
        async with (
            asyncio.timeout(timeout),
            aclosing(self._rt.queues.drain(queue, actor, reason, type)) as progress,
        ):
            async for _ in progress:
                pass

    async def release_queue(self, queue: str) -> None:
        """End the reservation of a queue; raises Refused if it is not reserved."""
        await self._rt.queues.release_reservation(queue, await self._rt.actor(Source.API))

    async def move(self, job: JobName, place: Place, anchor: JobName | None = None) -> None:
        """Move a queued job to the `top` or `bottom`, or `before` or `after` another job.

        Raises NotFound, and Refused for a job that is not queued or in another queue.
        """
        number = await self._number(job)
        other = None if anchor is None else await self._number(anchor)
        if (other is None) != (place in ("top", "bottom")):
            raise UsageError("before and after require an anchor; top and bottom have none")
        await self._rt.queues.move(number, place, await self._rt.actor(Source.API), other)

    async def prioritize(self, job: JobName, priority: int) -> None:
        """Change the priority of a waiting job; raises NotFound, UsageError, Refused."""
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        await self._rt.queues.prioritize(number, priority, actor)

    async def order(self, limit: int = 50, queue: str | None = None) -> list[QueuedJob]:
        """Return the waiting jobs by queue: those that can be claimed, in their order, then others.

        `hold` is the reason of their wait, also for a worker; None: they wait for a free slot.
        """
        waiting = await self._rt.queues.order(limit, queue)
        return [*waiting, *await self._rt.queues.held(limit, queue)][:limit]

    async def why(self, job: JobName) -> WaitReason:
        """Return the reason of the status of a job, and the next step; raises NotFound."""
        return await self._rt.read_model.why(await self._number(job))

    async def _number(self, job: JobName) -> int:
        if isinstance(job, Job | SubmittedJob):
            return job.number
        return await self._rt.read_model.resolve(parse_job(str(job)))


# Methods of the client about templates and schedules.


class ScheduleClient(QueueClient):
    """The part of `Client` that concerns templates and schedules."""

    async def templates(self) -> list[Template]:
        """Return the newest version of each template, by name."""
        return await self._rt.templates.all()

    async def schedules(self) -> list[Schedule]:
        """Return all schedules, by name."""
        return await self._rt.schedules.all()

    async def run_schedule(self, name: str) -> SubmittedJob:
        """Submit the job of a schedule now, beside its occurrences; raises NotFound."""
        return await self._rt.schedules.run(name, await self._rt.actor(Source.API))

    async def pause_schedule(self, name: str, reason: str | None = None) -> Schedule:
        """Pause a schedule; raises NotFound, and Refused if it is paused."""
        return await self._rt.schedules.pause(name, await self._rt.actor(Source.API), reason)

    async def resume_schedule(self, name: str) -> Schedule:
        """Resume a schedule from its next occurrence on; raises NotFound, Refused."""
        return await self._rt.schedules.resume(name, await self._rt.actor(Source.API))

    async def add_template(self, name: str, *, replace: bool = False, **fields: Any) -> Template:
        """Store a template; with `replace`, an existing one gets a new version if it differs.

        `fields` are those of a request, `description`, and `parameters` as a JSON Schema of an
        object. Raises UsageError, and Conflict where the template exists.
        """
        definition = define(fields)
        actor = await self._rt.actor(Source.API)
        try:
            return await self._rt.templates.add(name, definition, actor)
        except Conflict:
            if not replace:
                raise
        return await self._rt.templates.edit(await self._rt.templates.get(name), definition, actor)

    async def remove_template(self, name: str) -> None:
        """Remove a template; its versions are kept for its jobs. Raises NotFound."""
        await self._rt.templates.remove(name, await self._rt.actor(Source.API))

    async def add_schedule(
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
        """Store a schedule of a template with `params`, or of a `request` of its own.

        `rule` is a cron expression, `@every 90m` or `@at 2030-12-31T18:00:00Z`; `jitter` is in
        seconds. With `replace`, an existing schedule is changed. Raises UsageError, NotFound, and
        Conflict where the schedule exists.
        """
        spec = ScheduleSpec(
            name=name,
            rule=rule,
            timezone=zone,
            template=template,
            params=params,
            request=request,
            misfire=Misfire(misfire),
            misfire_limit=misfire_limit,
            jitter=jitter,
            overlap=Overlap(overlap),
        )
        actor = await self._rt.actor(Source.API)
        try:
            return await self._rt.schedules.add(spec, actor)
        except Conflict:
            if not replace:
                raise
        return await self._rt.schedules.change(spec, actor)

    async def remove_schedule(self, name: str) -> None:
        """Delete a schedule with its history; its jobs are kept. Raises NotFound."""
        await self._rt.schedules.remove(name, await self._rt.actor(Source.API))

    async def occurrences(self, name: str, count: int = 10) -> list[datetime]:
        """Return the next times of a schedule; raises NotFound."""
        return await self._rt.schedules.upcoming(name, count)

    async def schedule_history(self, name: str | None = None, limit: int = 50) -> list[Fire]:
        """Return the past occurrences of a schedule, or of all, newest first; raises NotFound."""
        return await self._rt.schedules.history(name, limit)


def _refusal(verdict: Verdict) -> Refused:
    """Return the error of an answer that does not count."""
    text = "".join(map(local_text, refusal_text(verdict)))
    return QuestionClosed(text) if verdict.resolved else Refused(text)


HOUR = 3600.0
"""Default duration of an acknowledgment and of a delegation, in seconds."""


class QuestionClient(ScheduleClient):
    """The part of `Client` that concerns questions."""

    async def questions(self, job: JobName | None = None) -> list[Question]:
        """Return the open questions of a job, or of all jobs, the next to expire first."""
        number = None if job is None else await self._number(job)
        return list(await self._rt.questions.open(number))

    async def answer(self, question: str | Question, text: str) -> Verdict:
        """Answer a question (`"D-142/1"`) with a choice or with free text.

        Raises NotFound, UsageError for an invalid answer, QuestionClosed if the question is
        already resolved, and Refused otherwise.
        """
        return await self._respond(question, text=text)

    async def approve(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Approve an approval; raises as `answer` does."""
        return await self._respond(question, decision=Decision.APPROVE, reason=reason)

    async def deny(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Deny an approval; raises as `answer` does."""
        return await self._respond(question, decision=Decision.DENY, reason=reason)

    async def request_changes(
        self, question: str | Question, text: str = "", *, comments: Sequence[str] = ()
    ) -> Verdict:
        """Request changes of work, which its agent makes before people are asked again.

        A comment is `FILE:LINE=TEXT` or `FILE=TEXT`, on a changed file and a line that its diff
        shows. Raises as `answer` does, also for an approval that takes no requests.
        """
        row = await self._question(question)
        call = Call(self._rt, await self._rt.actor(Source.API))
        try:
            result = await request_changes(call, row, text, comments=comments)
        except AnswerRefused as error:
            raise _refusal(error.verdict) from None
        assert isinstance(result.value, Verdict)  # noqa: S101 - it is not held for an undo
        return result.value

    async def acknowledge(self, question: str | Question, seconds: float = HOUR) -> ReminderDelay:
        """Acknowledge a question: you work on the answer, and others are not notified until then.

        Raises NotFound, UsageError for more than a day, QuestionClosed, and Refused while another
        person works on it.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.acknowledge(job, ordinal, actor, seconds)

    async def snooze(self, question: str | Question, seconds: float) -> datetime:
        """Pause your own reminders of a question; return until when.

        Raises as `acknowledge` does.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.snooze(job, ordinal, actor, seconds)

    async def delegate(
        self, question: str | Question, person: str, seconds: float = HOUR
    ) -> datetime:
        """Ask another person to answer a question; return until when others are not notified.

        Raises as `acknowledge` does, and UsageError for an unknown person.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.delegate(job, ordinal, actor, person, seconds)

    async def _respond(
        self,
        question: str | Question,
        *,
        text: str | None = None,
        decision: Decision | None = None,
        reason: str | None = None,
    ) -> Verdict:
        job, ordinal = await self._question(question)
        response = Response(
            source_event_id=f"api:{uuid4()}", text=text, decision=decision, reason=reason
        )
        actor = await self._rt.actor(Source.API)
        verdict = await self._rt.questions.answer(job, ordinal, response, actor)
        if verdict.accepted:
            return verdict
        raise _refusal(verdict)

    async def _question(self, question: str | Question) -> tuple[int, int]:
        if isinstance(question, Question):
            return question.job, question.ordinal
        job, ordinal = parse_question(question)
        number = await self._rt.read_model.resolve(job)
        if ordinal is None:
            raise UsageError(f"{question!r} is a job; specify a question, such as {question}/1")
        return number, ordinal


Cursor = tuple[int, int, int]
"""A position in the event feed of all jobs: `Event.cursor`."""
MAX_NAMED: Final = 5
"""Jobs that the error of a wait names."""
ACTIVITY_INTERVAL = 0.3
"""Seconds between reads of new activity."""


class Client(QuestionClient):
    """An open connection; `async with Draftsman() as client` returns it.

    The actor is the operating-system user, or on a remote server the database role, as for the
    command line. Every method may raise NotPermitted and DatabaseUnreachable.
    """

    async def submit(
        self,
        text: str | None = None,
        *,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
        reserve: float | None = None,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job, or return the job that was created with the same `key`.

        With `reserve`, in seconds, a new job reserves its queue as `draftsman run --now` does; this
        raises Refused where the queue is reserved or paused. With `connection`, a psycopg
        connection of the caller, the job is created in the caller's transaction: it exists if and
        only if that commits. Raises IdempotencyConflict, and UsageError, with `field` for a field
        that no worker can run; `unchecked` skips the checks of the type, chat or model against the
        configuration and live workers.
        """
        request = cast(Request, fields if text is None else {**fields, "text": text})
        if reserve is not None:
            if connection is not None:
                raise UsageError("reserve cannot be combined with connection")
            (resolved,) = await self._resolve([request], unchecked)
            actor = await self._rt.actor(Source.API)
            return (await self._rt.reservations.submit(resolved, actor, reserve))[0]
        jobs = await self.submit_many([request], connection=connection, unchecked=unchecked)
        return jobs[0]

    async def submit_many(
        self,
        requests: Iterable[Request],
        *,
        group: str | dict[str, str] | None = None,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
    ) -> list[SubmittedJob]:
        """Create a job for each request in a single statement; return them in the same order.

        `group` is the group of all requests that name none.

        Raises UsageError, with a note that has the position of the request, before any job is
        created. After an IdempotencyConflict, whose `place` is the index of the request, the other
        jobs exist unless `connection` is rolled back; submitting the same requests again is safe.
        """
        requests = list(requests)
        if group is not None:
            requests = [cast(Request, {"group": group, **fields}) for fields in requests]
        batch = payload_batch(requests)
        if batch is not None:
            requests = [cast(Request, {**requests[0], "payload": {}})]
        invocations = await self._resolve(requests, unchecked)
        if not invocations:
            return []
        actor = await self._rt.actor(Source.API)
        submissions = self._rt.submissions
        if connection is not None:
            await submissions.postpone_until_commit(connection)
        if batch is None:
            return await submissions.submit_many(invocations, actor, connection=connection)
        return await submissions.submit_payloads(
            invocations[0], batch, actor, connection=connection
        )

    async def submit_stream(
        self, requests: Iterable[Request] | AsyncIterable[Request], *, unchecked: bool = False
    ) -> AsyncIterator[SubmittedJob]:
        """Create a job for each of any number of requests; yield the jobs in the same order.

        BATCH requests at a time are read, validated and submitted as by `submit_many`. After an
        error, which has a note that says where the batch starts, the jobs of the earlier batches
        exist; submitting the same requests again creates no second job for those with a `key`.
        """
        position = 1
        async for batch in batches(requests):
            with batch_note(position):
                jobs = await self.submit_many(batch, unchecked=unchecked)
            for job in jobs:
                yield job
            position += len(batch)

    async def run_template(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        unchecked: bool = False,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job from a template (`"nightly"`, or `"nightly@3"` for a version).

        `fields` replace those of the template. Raises NotFound, and UsageError for parameters that
        do not match the template's schema, or as `submit` does.
        """
        form = EnteredForm(params or {}, fields=fields)
        request = await self._rt.templates.request(name, form, unchecked=unchecked)
        return await self._rt.submissions.submit(request, await self._rt.actor(Source.API))

    async def get(self, job: JobName) -> Job:
        """Return a job with its status and result; raises NotFound."""
        return await self._rt.read_model.job(await self._number(job))

    async def jobs(self, **filters: Unpack[JobFilters]) -> list[JobSummary]:
        """Return the jobs that match all filters, newest first; 50 unless `limit` is given.

        `before` is the number of the last job of a page, for the next one.
        """
        return await self._rt.read_model.jobs(**filters)

    async def logs(self, job: JobName, *, follow: bool = False) -> AsyncIterator[LogChunk]:
        """Yield the output of the runs of a job; with `follow`, until the job has ended."""
        number = await self._number(job)
        async for chunk in self._rt.log_feed.items(number, follow=follow, activity=False):
            yield chunk

    async def diff(self, job: JobName) -> str | None:
        """Return the newest changes of a job as a patch of git; None: it has none."""
        patch = await self._rt.changes.patch(await self._number(job))
        if patch is None:
            return None
        return (await self._rt.checkpoints.content(patch)).decode("utf-8", "replace")

    async def artifacts(self, job: JobName) -> list[Artifact]:
        """Return the files of a job, without their bytes; raises NotFound."""
        return await self._rt.checkpoints.artifacts(await self._number(job))

    async def artifact(self, job: JobName, name: str) -> bytes:
        """Return the bytes of a file of a job, of the newest if several have the name.

        Raises NotFound.
        """
        _, data = await self._rt.checkpoints.read_artifact(await self._number(job), name)
        return data

    async def wait_all(self, jobs: Iterable[JobName], timeout: float | None = None) -> list[Job]:
        """Return the jobs, in their order, once all have ended; raises NotFound.

        Raises TimeoutError after `timeout` seconds; the jobs are not affected.
        """
        numbers = [await self._number(job) for job in jobs]
        left = set(numbers)
        try:
            async with asyncio.timeout(timeout) as timer:
                async for number in self._rt.read_model.ends(numbers):
                    left.discard(number)
        except TimeoutError:
            if timer.expired():
                names = ", ".join(map(job_name, sorted(left)[:MAX_NAMED]))
                more = f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
                text = f"{names}{more} did not end within {timeout:g} s"
                raise TimeoutError(text) from None
            raise
        return [await self._rt.read_model.job(number) for number in numbers]

    async def wait(self, job: JobName, timeout: float | None = None) -> Job:
        """Return a job once it has ended; raises NotFound.

        Raises TimeoutError after `timeout` seconds; the job is not affected.
        """
        number = await self._number(job)
        try:
            async with asyncio.timeout(timeout) as timer:
                await self._rt.read_model.wait(number)
        except TimeoutError:
            if timer.expired():
                raise TimeoutError(f"{job_name(number)} did not end within {timeout:g} s") from None
            raise
        return await self._rt.read_model.job(number)

    async def tell(self, job: JobName, text: str, *, key: str | None = None) -> SentMessage:
        """Send a message to the agent of a job; the same `key` is sent once.

        Raises NotFound, UsageError for its text, IdempotencyConflict for a key of another text, and
        Refused for a job that takes no messages.
        """
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.messages.send(number, actor, text, key=key)

    async def pause(self, job: JobName, reason: str) -> PauseResult:
        """Pause a job: a running job is parked, and no worker claims it. Raises Refused."""
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.pause(number, actor, reason)

    async def resume(self, job: JobName) -> PauseResult:
        """End the pause of a job; raises Refused."""
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.resume(number, actor)

    async def cancel(
        self, job: JobName, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """Cancel a job; the worker of a running job stops it first, unless `force` is set.

        Raises NotFound, and Refused if the job has already ended.
        """
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.cancel(number, actor, reason, force=force)

    async def retry(
        self, job: JobName, *, fresh: bool = False, again: bool = False
    ) -> SubmittedJob:
        """Create a new job that continues from the last checkpoint of a finished job.

        `fresh` starts from the beginning; `again` allows a completed job. Raises NotFound, Refused.
        """
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.retry(number, actor, fresh=fresh, again=again)

    async def dismiss(self, job: JobName, reason: str | None = None) -> DismissResult:
        """Take a failed job out of those that need a person; a second call changes nothing.

        Raises NotFound, and Refused if the job did not fail, or was denied or retried.
        """
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.dismiss(number, actor, reason)

    async def undismiss(self, job: JobName) -> DismissResult:
        """Take the dismissal of a failed job back; raises Refused without one."""
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.undismiss(number, actor)

    async def events(
        self, job: JobName | None = None, *, after: Event | Cursor | None = None, new: bool = False
    ) -> AsyncIterator[Event]:
        """Yield the events of a job until it has ended, or those of all jobs without end.

        No event is skipped, whatever the order in which transactions commit. `after` continues
        after an event or its `cursor`, which can be stored. `new` omits existing events.
        """
        number = None if job is None else await self._number(job)
        cursor = after.cursor if isinstance(after, Event) else after
        async for event in self._rt.read_model.follow(number, new=new, after=cursor):
            yield event

    async def activity(self, job: JobName) -> AsyncIterator[ActivityRow]:
        """Yield the activity of the agent of a job until the job has ended."""
        number = await self._number(job)
        after = (0, 0)
        while True:
            ended = (await self._rt.read_model.job(number)).status in TERMINAL
            rows = await self._rt.activity.page(number, after)
            for row in rows:
                after = row.run, row.seq
                yield row
            if not rows:
                if ended:
                    return
                await asyncio.sleep(ACTIVITY_INTERVAL)

    async def _resolve(self, requests: Iterable[Request], unchecked: bool) -> list[Invocation]:
        """Return the checked requests; a UsageError has a note with the position."""
        checks = self._rt.request_checks
        invocations = []
        for position, fields in enumerate(requests, 1):
            try:
                require_instructions(fields)
                request = build_request(await self._with_parents(fields), self._rt.settings)
                invocations.append(await checks.resolve(request, unchecked=unchecked))
            except UsageError as error:
                error.add_note(f"request {position}")
                raise
        return invocations

    async def _with_parents(self, fields: Request) -> Request:
        """Replace the jobs and ids of `after` by numbers; other texts are names in the batch."""
        if "after" not in fields:
            return fields
        after: Any = fields["after"]
        parents = [
            await self._number(item) if isinstance(item, Job | SubmittedJob | UUID) else item
            for item in (after if isinstance(after, list | tuple) else [after])
        ]
        return cast(Request, {**fields, "after": parents})

    async def cancel_tree(self, job: JobName, reason: str | None = None) -> list[CancelResult]:
        """Cancel a job and all that wait for it, directly or not.

        Workers of running jobs stop them first. Raises NotFound, and Refused if all have ended.
        """
        number = await self._number(job)
        actor = await self._rt.actor(Source.API)
        return await self._rt.job_control.cancel_tree(number, actor, reason)

    async def groups(self) -> list[JobGroup]:
        """Return the newest groups, with the numbers of their jobs."""
        return await self._rt.workflows.groups.all()

    async def group(self, name: str) -> JobGroup:
        """Return a group with its state and progress; raises NotFound."""
        return await self._rt.workflows.groups.get(name)

    async def group_members(self, name: str) -> list[GroupMember]:
        """Return the first 1,000 jobs of a group, in order; raises NotFound."""
        return await self._rt.workflows.groups.members(name)

    async def cancel_group(self, name: str, reason: str | None = None) -> list[CancelResult]:
        """Cancel the unfinished jobs of a group; those that are added later are canceled too."""
        return await self._rt.job_control.cancel_group(
            name, await self._rt.actor(Source.API), reason
        )

    async def tree(self, job: JobName) -> JobTree:
        """Return a job and all that wait for it, directly or not; raises NotFound."""
        return await self._rt.workflows.tree(await self._number(job))
