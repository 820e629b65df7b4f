"""Asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast
from uuid import UUID

from draftsman.agent_runs.activity.stream import ActivityRow
from draftsman.client.batches import batch_note, batches
from draftsman.client.questions import QuestionClient
from draftsman.client.requests import Fields, JobName, Request
from draftsman.errors import UsageError
from draftsman.events.event import Event
from draftsman.ids import job_name
from draftsman.jobs.control.job_message import SentMessage
from draftsman.jobs.control.service.control import CancelResult, PauseResult
from draftsman.jobs.job import TERMINAL, Job, Source
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import build_request, require_instructions
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.workflows.dependencies import JobTree
from draftsman.workflows.groups import GroupMember, JobGroup

if TYPE_CHECKING:
    from draftsman.database.caller_connection import CallersConnection

Cursor = tuple[int, int, int]
"""A position in the event feed of all jobs: `Event.cursor`."""
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
        if group is not None:
            requests = [cast(Request, {"group": group, **fields}) for fields in requests]
        invocations = await self._resolve(requests, unchecked)
        if not invocations:
            return []
        actor = await self._rt.actor(Source.API)
        if connection is not None:
            await self._rt.submissions.postpone_until_commit(connection)
        return await self._rt.submissions.submit_many(invocations, actor, connection=connection)

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
        request = await self._rt.templates.request(
            name, params or {}, fields=fields, unchecked=unchecked
        )
        return await self._rt.submissions.submit(request, await self._rt.actor(Source.API))

    async def get(self, job: JobName) -> Job:
        """Return a job with its status and result; raises NotFound."""
        return await self._rt.read_model.job(await self._number(job))

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
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        return await self._rt.messages.send(number, actor, text, key=key)

    async def pause(self, job: JobName, reason: str) -> PauseResult:
        """Pause a job: a running job is parked, and no worker claims it. Raises Refused."""
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        return await self._rt.job_control.pause(number, actor, reason)

    async def resume(self, job: JobName) -> PauseResult:
        """End the pause of a job; raises Refused."""
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        return await self._rt.job_control.resume(number, actor)

    async def cancel(
        self, job: JobName, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """Cancel a job; the worker of a running job stops it first, unless `force` is set.

        Raises NotFound, and Refused if the job has already ended.
        """
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        return await self._rt.job_control.cancel(number, actor, reason, force=force)

    async def retry(
        self, job: JobName, *, fresh: bool = False, again: bool = False
    ) -> SubmittedJob:
        """Create a new job that continues from the last checkpoint of a finished job.

        `fresh` starts from the beginning; `again` allows a completed job. Raises NotFound, Refused.
        """
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        return await self._rt.job_control.retry(number, actor, fresh=fresh, again=again)

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
        number, after = await self._number(job), (0, 0)
        while True:
            ended = (await self._rt.read_model.job(number)).status in TERMINAL
            rows = await self._rt.checkpoints.activity.page(number, after)
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
        number, actor = await self._number(job), await self._rt.actor(Source.API)
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
