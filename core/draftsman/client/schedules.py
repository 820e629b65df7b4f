"""Methods of the client about templates and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from draftsman.client.queues import QueueClient
from draftsman.errors import Conflict
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.schedules.schedule import Fire, Misfire, Overlap, Schedule, ScheduleSpec
from draftsman.schedules.template import Template, define


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
        definition, actor = define(fields), await self._rt.actor(Source.API)
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
            name, rule, zone, template, params, request,
            Misfire(misfire), misfire_limit, jitter, Overlap(overlap),
        )  # fmt: skip
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
