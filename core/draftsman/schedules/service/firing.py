"""Firing of schedules by the leader: each occurrence becomes at most one job.

A batch locks schedules, and stores the outcome of each occurrence in the transaction that inserts
its job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.database.selection import Selection
from draftsman.errors import DatabaseUnreachable, DraftsmanError, NotPermitted
from draftsman.formats.truncation import truncate
from draftsman.ids import job_name
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import (
    RequestChecks,
    build_request,
    require_instructions,
)
from draftsman.jobs.requests.service.submissions import Submissions, SubmittedJob
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import checkpoints
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.people.actor import SYSTEM, Actor
from draftsman.people.policy import ROLES, Policy, Verb
from draftsman.schedules import store
from draftsman.schedules.schedule import (
    CODE,
    DECLARED_BY,
    Due,
    FireStatus,
    Overlap,
    Schedule,
    due_occurrences,
)
from draftsman.schedules.service.templates import Templates, find_template, parse_name
from draftsman.schedules.store import Outcome
from draftsman.schedules.template import Template
from draftsman.settings import Settings
from draftsman.text import canonical

MAX_REASON: Final = 500
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An occurrence that fires: its schedule, its time, and whether it waited."""

    schedule: Schedule
    at: datetime
    waited: bool = False


@dataclass(slots=True)
class _Batch:
    """The decisions about the occurrences of a batch."""

    attempts: list[_Attempt] = field(default_factory=list)
    waited: list[Outcome] = field(default_factory=list)
    new: list[Outcome] = field(default_factory=list)
    following: dict[int, tuple[datetime | None, datetime | None]] = field(default_factory=dict)
    replaced: list[tuple[int, str]] = field(default_factory=list)
    """Unfinished jobs that are canceled, and the schedule of each."""
    jobs: dict[int, int] = field(default_factory=dict)
    """The newest job of each schedule."""


class _Requests:
    """The requests of schedules, or the reasons why they are refused; equal ones are built once."""

    def __init__(
        self, templates: Templates, checks: RequestChecks, settings: Settings, policy: Policy
    ) -> None:
        self._templates = templates
        self._checks = checks
        self._settings = settings
        self._policy = policy
        self._built: dict[str, Invocation | str] = {}

    async def of(
        self, schedule: Schedule, versions: Mapping[str, Template | str], checker: SchemaChecker
    ) -> tuple[Invocation, Actor] | str:
        """Return the request and actor of a schedule, or why it is refused."""
        actor = _actor(schedule.created_by, self._policy)
        if actor is None:
            return f"{schedule.created_by} is not a known person any more"
        try:
            self._policy.check(actor, Verb.SUBMIT)
        except NotPermitted as error:
            return _reason(error)
        template = versions.get(schedule.template or "")
        if isinstance(template, str):
            return template
        content = schedule.request if template is None else [template.version, schedule.params]
        key = canonical([schedule.template, content])
        if key not in self._built:
            self._built[key] = await self._build(schedule, template, checker)
        built = self._built[key]
        return built if isinstance(built, str) else (built, actor)

    async def _build(
        self, schedule: Schedule, template: Template | None, checker: SchemaChecker
    ) -> Invocation | str:
        try:
            if template is not None:
                request = await self._templates.build(
                    template, EnteredForm(schedule.params), checker
                )
            else:
                fields: Mapping[str, Any] = schedule.request or {}
                require_instructions(fields)
                request = build_request(fields, self._settings)
            request = await self._checks.resolve(request, chats=False)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            return _reason(error)
        return request


class Firing:
    """The sweep that fires schedules."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        settings: Settings,
        templates: Templates,
        checks: RequestChecks,
        submissions: Submissions,
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._templates = templates
        self._checks = checks
        self._submissions = submissions
        self._isolation = Isolation(db, "schedules", lambda id: f"schedule {id}")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of schedules."""
        return [
            Sweep(
                name="schedules",
                description="submits the jobs of schedules",
                run=self.fire,
                isolations=(self._isolation,),
                due=DueTime(DueTurn.NEW_JOBS, store.SCHEDULES_DUE),
            )
        ]

    async def fire(self, term: LeaderTerm) -> int:
        """Record every occurrence that is due; return the number of schedules.

        All occurrences that wait are read to find the ready ones, so not again for each batch.
        """
        requests = _Requests(self._templates, self._checks, self._settings, self._policy)
        limit = self._settings.sweeps.limit
        ready_before = limit
        ready_count = 0
        async with SchemaChecker() as checker:

            async def find(
                conn: Connection, selection: Selection
            ) -> tuple[Sequence[Schedule], Sequence[Schedule]]:
                is_more_ready = ready_before >= limit
                waited = await store.ready(conn, term, limit, selection) if is_more_ready else ()
                return waited, await store.due(conn, term, limit, selection)

            async def work(conn: Connection, selection: Selection) -> int:
                nonlocal ready_count
                waited, due = await find(conn, selection)
                ready_count = len(waited)
                return await self._fire_batch(conn, waited, due, requests, checker)

            async def candidates(conn: Connection, selection: Selection) -> list[int]:
                waited, due = await find(conn, selection)
                return sorted({schedule.id for schedule in (*waited, *due)})

            async def batch(term: LeaderTerm) -> int:
                nonlocal ready_before
                count = await self._isolation.run(work, candidates)
                ready_before = ready_count
                return count

            return await repeat(batch, limit, term)

    async def _fire_batch(
        self,
        conn: Connection,
        ready: Sequence[Schedule],
        due: Sequence[Schedule],
        requests: _Requests,
        checker: SchemaChecker,
    ) -> int:
        schedules = {schedule.id: schedule for schedule in (*ready, *due)}
        if not schedules:
            return 0
        now = await checkpoints.now(conn)
        recorded = await store.recorded(
            conn, [(item.id, item.due_at or now) for item in schedules.values()]
        )
        last_jobs = [item.last_job for item in schedules.values() if item.last_job]
        unfinished = await store.unfinished(conn, last_jobs) if last_jobs else set()
        versions = await _versions(conn, schedules.values())
        built = {item.id: await requests.of(item, versions, checker) for item in schedules.values()}
        batch = _Batch()
        is_due = {item.id for item in due}
        is_ready = {item.id for item in ready}
        for item in schedules.values():
            waiting = [at for id, at, status in recorded if id == item.id and status == "waiting"]
            recorded_times = {at for id, at, _ in recorded if id == item.id}
            refusal = reason if isinstance(reason := built[item.id], str) else None
            state = _Overlap(item, waiting, refusal, active=item.last_job in unfinished)
            if item.id in is_ready and waiting:
                state.resolve_oldest(batch)
            if item.id in is_due:
                occurrences, following = due_occurrences(item, now)
                state.decide([each for each in occurrences if each.at not in recorded_times], batch)
                batch.following[item.id] = following, following and item.fire_time(following)
            else:
                batch.following[item.id] = item.due_at, item.fire_at
        await self._store(conn, batch, built)
        return len(schedules)

    async def _store(
        self,
        conn: Connection,
        batch: _Batch,
        built: Mapping[int, tuple[Invocation, Actor] | str],
    ) -> None:
        """Cancel, submit, and store the outcomes and the next occurrences."""
        for job, name in batch.replaced:
            await _cancel(conn, job, f"schedule {name} is due again")
        requests = []
        for attempt in batch.attempts:
            planned = built[attempt.schedule.id]
            if not isinstance(planned, str):
                request, actor = planned
                key = attempt.schedule.key(attempt.at)
                requests.append((request.model_copy(update={"key": key}), actor))
        results = await self._submit(conn, requests)
        for attempt, result in zip(batch.attempts, results, strict=True):
            outcome = _outcome(attempt, result)
            outcomes = batch.waited if attempt.waited else batch.new
            outcomes.append(outcome)
            if outcome.job is not None:
                batch.jobs[attempt.schedule.id] = outcome.job
        if batch.waited:
            await store.resolve(conn, batch.waited)
        if batch.new:
            await store.record(conn, batch.new)
        await store.advance(
            conn,
            [(id, due, fire, batch.jobs.get(id)) for id, (due, fire) in batch.following.items()],
        )
        await store.forget(conn, list(batch.following))
        for outcome in (*batch.waited, *batch.new):
            if outcome.status is FireStatus.REFUSED:
                _log.warning("occurrence of a schedule was refused: %s", outcome.reason)

    async def _submit(
        self, conn: Connection, requests: Sequence[tuple[Invocation, Actor]]
    ) -> list[SubmittedJob | DraftsmanError]:
        """Submit all requests; if that fails, each by itself."""
        if not requests:
            return []
        try:
            async with conn.transaction():
                return list(await self._submissions.submit_each(requests, connection=conn))
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            if len(requests) == 1:
                return [error]
        results: list[SubmittedJob | DraftsmanError] = []
        for request in requests:
            results += await self._submit(conn, [request])
        return results


class _Overlap:
    """The occurrences of a schedule, in order, beside its unfinished job."""

    def __init__(
        self,
        schedule: Schedule,
        waiting: Sequence[datetime],
        refusal: str | None,
        *,
        active: bool,
    ) -> None:
        self._schedule = schedule
        self._waiting = list(waiting)
        self._refusal = refusal
        self._active = active
        self._fired = False

    def resolve_oldest(self, batch: _Batch) -> None:
        """Fire the oldest waiting occurrence."""
        at = self._waiting.pop(0)
        if self._refusal is not None:
            batch.waited.append(self._result(at, FireStatus.REFUSED, self._refusal))
            return
        batch.attempts.append(_Attempt(self._schedule, at, waited=True))
        self._active = True
        self._fired = True

    def decide(self, due: Sequence[Due], batch: _Batch) -> None:
        """Decide about new occurrences."""
        firing = [each for each in due if each.reason is None]
        for each in due:
            reason = each.reason
            if reason is None and self._schedule.overlap is Overlap.CANCEL_RUNNING:
                reason = None if each is firing[-1] else "missed: a later occurrence was due"
            if reason is not None:
                batch.new.append(self._result(each.at, FireStatus.SKIPPED, reason))
            elif self._refusal is not None:
                batch.new.append(self._result(each.at, FireStatus.REFUSED, self._refusal))
            else:
                self._fire(each.at, batch)

    def _fire(self, at: datetime, batch: _Batch) -> None:
        if self._active or self._waiting:
            match self._schedule.overlap:
                case Overlap.SKIP:
                    reason = f"{self._previous} is unfinished"
                    batch.new.append(self._result(at, FireStatus.SKIPPED, reason))
                    return
                case Overlap.QUEUE if len(self._waiting) >= self._schedule.misfire_limit:
                    reason = f"{len(self._waiting)} occurrences wait already"
                    batch.new.append(self._result(at, FireStatus.SKIPPED, reason))
                    return
                case Overlap.QUEUE:
                    self._waiting.append(at)
                    batch.new.append(self._result(at, FireStatus.WAITING, None))
                    return
                case Overlap.CANCEL_RUNNING if self._schedule.last_job is not None:
                    batch.replaced.append((self._schedule.last_job, self._schedule.name))
        batch.attempts.append(_Attempt(self._schedule, at))
        self._active = True
        self._fired = True

    @property
    def _previous(self) -> str:
        job = None if self._fired else self._schedule.last_job
        return "the previous job" if job is None else job_name(job)

    def _result(self, at: datetime, status: FireStatus, reason: str | None) -> Outcome:
        return Outcome(self._schedule.id, at, status, None, reason)


async def _versions(conn: Connection, schedules: Iterable[Schedule]) -> dict[str, Template | str]:
    """Return the newest version of each template, or why there is none."""
    versions: dict[str, Template | str] = {}
    for name in {schedule.template for schedule in schedules if schedule.template}:
        try:
            versions[name] = await find_template(conn, *parse_name(name))
        except DraftsmanError as error:
            versions[name] = _reason(error)
    return versions


async def _cancel(conn: Connection, job: int, reason: str) -> None:
    """Cancel an unfinished job."""
    locked = await job_store.lock_to_cancel(conn, job)
    if locked is None:
        return
    if locked.status is Status.RUNNING:
        await job_store.request_cancel(conn, job, SYSTEM.name, reason)
    else:
        await job_store.cancel_now(conn, job, SYSTEM.name, reason)


def _outcome(attempt: _Attempt, result: SubmittedJob | DraftsmanError) -> Outcome:
    id = attempt.schedule.id
    at = attempt.at
    if isinstance(result, DraftsmanError):
        return Outcome(id, at, FireStatus.REFUSED, None, _reason(result))
    if result.outcome == "joined":
        reason = f"joined {result.name}, which has the same subject"
        return Outcome(id, at, FireStatus.SKIPPED, None, reason)
    return Outcome(id, at, FireStatus.FIRED, result.number)


def _actor(name: str, policy: Policy) -> Actor | None:
    """Return the author of a schedule, or the code that declares it; None for a removed person."""
    if name == DECLARED_BY:
        return Actor(Source.SCHEDULE, CODE, CODE, roles=frozenset({"invoker"}))
    person = policy.people.get(name)
    if policy.owner == name:
        return Actor(Source.SCHEDULE, name, name, name, ROLES, owner=True)
    if person is None:
        return None
    return Actor(Source.SCHEDULE, name, name, name, person.roles)


def _reason(error: DraftsmanError) -> str:
    return truncate(f"{error.subject} {error.reason}".strip(), MAX_REASON)
