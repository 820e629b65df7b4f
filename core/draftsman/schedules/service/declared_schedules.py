"""Schedules that job types declare: created, changed and paused with the code that is deployed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from draftsman.database.database import Connection, Database
from draftsman.errors import UsageError
from draftsman.job_types.published.description import PublishedType, deployed
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import checkpoints
from draftsman.jobs.runs.sweep import Sweep
from draftsman.schedules import store
from draftsman.schedules.schedule import CODE, DECLARED_BY, Schedule, ScheduleSpec, normal_spec

_log = logging.getLogger(__name__)


class DeclaredSchedules:
    """The sweep that makes the schedules of the deployed code those of the database.

    A schedule that is no longer declared is paused, and resumed if it is declared again. The pause
    of a person stays.
    """

    def __init__(self, db: Database, published: PublishedTypes) -> None:
        self._db = db
        self._published = published
        self._warned: set[str] = set()

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of declared schedules."""
        return [
            Sweep(
                name="declared_schedules",
                description="creates, changes and pauses the schedules that job types declare",
                run=self.apply,
                applies_settings=True,
            )
        ]

    async def apply(self, _: LeaderTerm) -> int:
        """Make the changes; return their number. Two leaders make the same."""
        types = await self._published.all()
        present = deployed(types)
        declared = _specs(present)
        gone = {type.name: type for type in types if type not in present}
        async with self._db.connection() as conn:
            current = {item.name: item for item in await store.of_origin(conn, CODE)}
        changed = 0
        for name in sorted(declared.keys() | current.keys()):
            work = partial(self._apply, name=name, spec=declared.get(name), gone=gone)
            changed += await self._db.run_transaction(work)
        return changed

    async def _apply(
        self,
        conn: Connection,
        name: str,
        spec: ScheduleSpec | None,
        gone: Mapping[str, PublishedType],
    ) -> int:
        """Make the change of a schedule in its transaction; return 1, or 0 without a change."""
        schedule = await store.lock(conn, name)
        if schedule is None:
            return 0 if spec is None else await self._add(conn, spec)
        if schedule.origin != CODE:
            if name not in self._warned:
                self._warned.add(name)
                _log.warning(
                    "the schedule %s, which a job type declares, is not added: %s added one of this"
                    " name; remove that, or use suffix= in the code",
                    name,
                    schedule.created_by,
                )
            return 0
        if spec is None:
            return await _pause(conn, schedule, gone)
        if schedule.spec() != spec:
            await store.change(conn, schedule.id, spec, DECLARED_BY, CODE)
            _log.info("changed the schedule %s, as the code declares it", name)
        elif schedule.paused_by != DECLARED_BY:
            return 0
        if schedule.paused_by == DECLARED_BY:
            await store.resume(conn, schedule.id, None, None)
            _log.info("resumed the schedule %s, which the code declares again", name)
        await _plan_next(conn, name)
        return 1

    async def _add(self, conn: Connection, spec: ScheduleSpec) -> int:
        if await store.add(conn, spec, DECLARED_BY, CODE) is None:
            return 0  # another session added it meanwhile
        await _plan_next(conn, spec.name)
        _log.info("added the schedule %s, which the code declares: %s", spec.name, spec.rule)
        return 1


async def _pause(conn: Connection, schedule: Schedule, gone: Mapping[str, PublishedType]) -> int:
    """Pause a schedule that is no longer declared."""
    if schedule.paused_at is not None:
        return 0
    reason = f"the code of {schedule.target} no longer declares it"
    if (type := gone.get(schedule.target or "")) is not None:
        reason = f"{type.app or type.module} no longer has {type.name}, which was {type.place}"
    await store.pause(conn, schedule.id, DECLARED_BY, reason)
    _log.warning("paused the schedule %s: %s", schedule.name, reason)
    return 1


async def _plan_next(conn: Connection, name: str) -> None:
    schedule = await store.by_name(conn, name)
    if schedule is not None:
        following = schedule.timing.next(await checkpoints.now(conn))
        await store.set_next(
            conn, schedule.id, following, following and schedule.fire_time(following)
        )


def _specs(types: Sequence[PublishedType]) -> Mapping[str, ScheduleSpec]:
    """Return the schedules of the types by name; of two of a name, that of the first type."""
    specs: dict[str, ScheduleSpec] = {}
    for type in types:
        for item in type.schedules:
            request: dict[str, Any] = {"type": type.name, "payload": item["payload"]}
            spec = ScheduleSpec(item["name"], item["rule"], item["zone"], request=request)
            try:
                specs.setdefault(spec.name, normal_spec(spec))
            except UsageError as error:  # a zone that this machine does not know
                _log.warning("the schedule %s of the code is left out: %s", spec.name, error)
    return specs
