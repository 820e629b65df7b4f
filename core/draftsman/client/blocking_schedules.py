"""Methods of the blocking client about templates and schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.schedules.schedule import Fire, Schedule
from draftsman.schedules.template import Template

if TYPE_CHECKING:
    from draftsman.client.asynchronous import Client

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
