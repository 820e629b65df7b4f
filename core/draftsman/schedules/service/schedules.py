"""Schedules: their definitions, pauses and history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import (
    CommandHint,
    Conflict,
    DatabaseUnreachable,
    DraftsmanError,
    NotFound,
    OptionHint,
    Refused,
    UsageError,
)
from draftsman.formats.near_names import did_you_mean
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import (
    RequestChecks,
    absolute_repo,
    build_request,
    require_instructions,
)
from draftsman.jobs.requests.service.submissions import Submissions, SubmittedJob
from draftsman.jobs.runs.store import checkpoints
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.schedules import store
from draftsman.schedules.schedule import (
    CODE,
    DECLARED_BY,
    Fire,
    FireStatus,
    Schedule,
    ScheduleChange,
    ScheduleSpec,
    Timing,
    check_spec,
    normal_spec,
)
from draftsman.schedules.service.templates import Templates
from draftsman.settings import Settings
from draftsman.text import clean

REASON_LIMIT: Final = 500


class Schedules:
    """Storage of schedules; their jobs are submitted by `Firing`."""

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
        self._db = db
        self._policy = policy
        self._settings = settings
        self._templates = templates
        self._checks = checks
        self._submissions = submissions

    all = on_connection(store.all_schedules)

    async def get(self, name: str) -> Schedule:
        """Return a schedule; raises NotFound."""
        async with self._db.connection() as conn:
            return await self._known(conn, name, store.by_name)

    async def history(self, name: str | None = None, limit: int = 50) -> list[Fire]:
        """Return the occurrences of a schedule, or of all, newest first; raises NotFound."""
        async with self._db.connection() as conn:
            if name is None:
                return await store.latest(conn, limit)
            await self._known(conn, name, store.by_name)
            return await store.history(conn, name, limit)

    of_job = on_connection(store.of_job)

    async def upcoming(self, name: str, count: int) -> list[datetime]:
        """Return the next occurrences of a schedule, also of a paused schedule; raises NotFound."""
        async with self._db.connection() as conn:
            schedule = await self._known(conn, name, store.by_name)
            now = await checkpoints.now(conn)
        return list(islice(schedule.upcoming(now), count))

    async def preview(self, spec: ScheduleSpec, count: int) -> list[datetime]:
        """Return the first occurrences of a definition; raises UsageError."""
        now = await self.now()
        checked = check_spec(spec, now)
        return list(islice(Timing(checked.rule, checked.timezone, now).after(now), count))

    now = on_connection(checkpoints.now)
    """The time of the database, by which schedules are due."""

    async def problem(self, schedule: Schedule) -> str | None:
        """Return why the next occurrence of a schedule will not run, None if nothing is known.

        The last refusal of the leader counts too: its configuration decides about agents.
        """
        author = self._policy.people.get(schedule.created_by)
        if author is not None and "invoker" not in author.roles:
            return f"its author {author.name} no longer has the role invoker"
        try:
            request = await self.request(schedule.spec(), chats=False)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            return f"{error.subject} {error.reason}".strip()
        types = await self._checks.live_types()
        if types and request.type not in types:
            return f"no live worker handles the type {request.type!r}"
        for unknown in await self._checks.unknown_types([request.type]):
            return unknown.warning
        if schedule.last_status is FireStatus.REFUSED:
            return f"its last occurrence was refused: {schedule.last_reason}"
        return None

    async def request(self, spec: ScheduleSpec, *, chats: bool = True) -> Invocation:
        """Return the request that a schedule submits now; raises UsageError, NotFound.

        `chats`: whether the chats of its targets must be configured here.
        """
        if spec.template is not None:
            form = EnteredForm(spec.params or {}, chats=chats)
            return await self._templates.request(spec.template, form, removed=True)
        fields = spec.request or {}
        require_instructions(fields)
        return await self._checks.resolve(build_request(fields, self._settings), chats=chats)

    async def add(
        self, spec: ScheduleSpec, actor: Actor, *, origin: str | None = None, chats: bool = True
    ) -> Schedule:
        """Store a schedule, which submits jobs in the name of the actor.

        `chats`: whether the chats of its targets must be configured here.

        Raises NotPermitted, UsageError, NotFound, and Conflict where the name exists.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.SUBMIT)
        spec = await self.checked(spec, chats=chats)

        async def work(conn: Connection) -> Schedule:
            if await store.add(conn, spec, actor.voter, origin) is None:
                raise Conflict(
                    f"schedule {spec.name} exists",
                    hint=OptionHint("replace", lead="to change it, use"),
                )
            return await self._plan_next(conn, spec.name)

        return await self._db.run_transaction(work)

    async def change(
        self, spec: ScheduleSpec, actor: Actor, *, origin: str | None = None
    ) -> Schedule:
        """Replace the definition of a schedule, which then submits jobs in the actor's name.

        Its next occurrence is after now. Raises NotPermitted, UsageError, NotFound.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.SUBMIT)
        spec = await self.checked(spec)

        async def work(conn: Connection) -> Schedule:
            schedule = await self._controlled(conn, spec.name, actor)
            if schedule.origin == CODE:
                raise Refused(
                    f"schedule {spec.name} is declared by the code of {schedule.target}; change it"
                    " there"
                )
            await store.change(conn, schedule.id, spec, actor.voter, origin)
            return await self._plan_next(conn, spec.name)

        return await self._db.run_transaction(work)

    async def pause(self, name: str, actor: Actor, reason: str | None = None) -> Schedule:
        """Pause a schedule: occurrences are not recorded until it is resumed.

        Raises NotFound, NotPermitted, and Refused if it is paused.
        """
        reason = clean(reason.strip())[:REASON_LIMIT] or None if reason else None

        async def work(conn: Connection) -> Schedule:
            schedule = await self._controlled(conn, name, actor)
            if schedule.paused_at is not None:
                raise Refused(f"schedule {name} is paused already, by {schedule.paused_by}")
            await store.pause(conn, schedule.id, self._policy.resolve(actor).voter, reason)
            return await self._known(conn, name, store.by_name)

        return await self._db.run_transaction(work)

    async def resume(self, name: str, actor: Actor) -> Schedule:
        """Resume a paused schedule from its next occurrence on.

        Raises NotFound, NotPermitted, and Refused if it is not paused.
        """

        async def work(conn: Connection) -> Schedule:
            schedule = await self._controlled(conn, name, actor)
            if schedule.paused_at is None:
                raise Refused(f"schedule {name} is not paused")
            now = await checkpoints.now(conn)
            following = schedule.timing.next(now)
            fire_at = following and schedule.fire_time(following)
            await store.resume(conn, schedule.id, following, fire_at)
            return await self._known(conn, name, store.by_name)

        return await self._db.run_transaction(work)

    async def remove(self, name: str, actor: Actor) -> None:
        """Delete a schedule with its history; its jobs are kept. Raises NotFound, NotPermitted."""

        async def work(conn: Connection) -> None:
            schedule = await self._controlled(conn, name, actor)
            if schedule.origin == CODE and schedule.paused_by != DECLARED_BY:
                raise Refused(
                    f"schedule {name} is declared by the code of {schedule.target}; remove it"
                    " there, or pause it",
                    hint=CommandHint("schedules pause", name),
                )
            await store.remove(conn, schedule.id)

        await self._db.run_transaction(work)

    async def run(self, name: str, actor: Actor) -> SubmittedJob:
        """Submit the job of a schedule now, in the actor's name, beside its occurrences.

        Raises NotFound, NotPermitted, UsageError.
        """
        actor = self._policy.resolve(actor)
        request = await self.request((await self.get(name)).spec(), chats=False)

        async def work(conn: Connection) -> SubmittedJob:
            schedule = await self._known(conn, name, store.lock)
            [job] = await self._submissions.submit_many([request], actor, connection=conn)
            if job.outcome == "created":
                reason = f"run by {actor.voter}"
                now = await checkpoints.now(conn)
                outcome = store.Outcome(schedule.id, now, FireStatus.FIRED, job.number, reason)
                await store.record(conn, [outcome])
            return job

        return await self._db.run_transaction(work)

    async def checked(self, spec: ScheduleSpec, *, chats: bool = True) -> ScheduleSpec:
        """Return a definition in its normal form, whose request passes all checks."""
        checked = _located(check_spec(spec, await self.now()))
        await self.request(checked, chats=chats)
        return checked

    async def plan(self, specs: Sequence[ScheduleSpec], origin: str) -> list[ScheduleChange]:
        """Return the changes that make these the schedules of an origin, by name.

        Raises UsageError and NotFound for an invalid definition, and Conflict for a schedule that
        is not of this origin.
        """
        if origin == CODE:
            raise UsageError(f"the name {CODE!r} is that of schedules of job types; use another")
        current = {schedule.name: schedule for schedule in await self.all()}
        changes = []
        for spec in specs:
            schedule = current.get(spec.name)
            if schedule is not None and schedule.origin != origin:
                source = f"from {schedule.origin}" if schedule.origin else "by a command"
                raise Conflict(
                    f"schedule {spec.name} was added {source}",
                    hint=CommandHint("schedules remove", spec.name, lead="to replace it, first"),
                )
            if schedule is not None and schedule.spec() == _located(normal_spec(spec)):
                continue
            action = "add" if schedule is None else "change"
            checked = await self.checked(spec)
            stored = None if schedule is None else schedule.spec()
            changes.append(ScheduleChange(action, spec.name, checked, stored))
        names = {spec.name for spec in specs}
        changes += [
            ScheduleChange("remove", schedule.name, None, schedule.spec())
            for schedule in current.values()
            if schedule.origin == origin and schedule.name not in names
        ]
        return sorted(changes, key=lambda change: change.name)

    async def apply(self, changes: Sequence[ScheduleChange], origin: str, actor: Actor) -> None:
        """Make the changes of a plan, one by one; the same plan can be made again.

        Raises NotPermitted, and Conflict and NotFound after a concurrent change.
        """
        for change in changes:
            if change.spec is None:
                await self.remove(change.name, actor)
            elif change.action == "add":
                await self.add(change.spec, actor, origin=origin)
            else:
                await self.change(change.spec, actor, origin=origin)

    async def _plan_next(self, conn: Connection, name: str) -> Schedule:
        """Store the next occurrence after now; return the schedule."""
        schedule = await self._known(conn, name, store.by_name)
        following = schedule.timing.next(await checkpoints.now(conn))
        fire_at = following and schedule.fire_time(following)
        await store.set_next(conn, schedule.id, following, fire_at)
        return await self._known(conn, name, store.by_name)

    async def _controlled(self, conn: Connection, name: str, actor: Actor) -> Schedule:
        """Lock a schedule that the actor may change."""
        schedule = await self._known(conn, name, store.lock)
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.SCHEDULES, invoker=schedule.created_by)
        return schedule

    async def _known(
        self,
        conn: Connection,
        name: str,
        read: Callable[[Connection, str], Awaitable[Schedule | None]],
    ) -> Schedule:
        """Return a schedule; raises NotFound with near names."""
        if (schedule := await read(conn, name)) is not None:
            return schedule
        names = [schedule.name for schedule in await store.all_schedules(conn)]
        tail = did_you_mean(name, names)
        raise NotFound(
            f"unknown schedule {clean(name)[:80]!r}{tail}", hint=CommandHint("schedules list")
        )


def _located(spec: ScheduleSpec) -> ScheduleSpec:
    """Return the definition with an absolute path of its repository."""
    if spec.request is None or not isinstance(repo := spec.request.get("repo"), str):
        return spec
    return replace(spec, request={**spec.request, "repo": absolute_repo(repo)})
