"""Processing of requests and answers, and the reads of issues that bring them without a webhook."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.forges.api.rest_api import GONE
from draftsman.forges.issue_target import IssueTarget
from draftsman.forges.project import find_project
from draftsman_bots.forges.context import EventContext
from draftsman_bots.forges.events import on_event
from draftsman_bots.forges.isolation import is_answer
from draftsman_bots.forges.questions import IGNORED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from draftsman.forges.forge import EventSource
    from draftsman.forges.forge_event import ForgeEvent, StoredEvent
    from draftsman.runtime import Runtime
    from draftsman.settings.forges import ForgeSettings
    from draftsman_bots.process.health import WebhookHealth

RETRY: Final = 30.0
"""Seconds before an event is processed again after a failure that names no time."""
FIRST: Final = timedelta(days=1)
"""Age of the oldest comments that are read after the start."""
OVERLAP: Final = timedelta(minutes=5)
"""Time for which comments are read again: clocks differ, and an edit is a new comment."""
_log = logging.getLogger(__name__)


class PeopleEventProcessor:
    """Submits the requests and answers that were received, oldest first."""

    def __init__(
        self, rt: Runtime, health: WebhookHealth, own_login: Callable[[str, str], Awaitable[str]]
    ) -> None:
        """Take a function that returns the login of draftsman for a forge and a repository."""
        self._rt = rt
        self._health = health
        self._own_login = own_login
        self._paused: dict[int, float] = {}

    async def process(self) -> None:
        """Process all events that are due; a failure delays only its own event.

        In a repository that gives no answer, it delays those after it as well.
        """
        forges = self._rt.settings.read_forges
        now = time.monotonic()
        silent: dict[tuple[str, str], float] = {}
        paused = [id for id, until in self._paused.items() if until > now]
        for stored in await self._rt.forge_events.unprocessed(list(forges), paused):
            repository = (stored.forge, stored.event.project)
            if repository in silent:
                self._paused[stored.id] = silent[repository]
                continue
            try:
                outcome = await self._outcome(stored, forges[stored.forge])
                await self._rt.forge_events.finish(stored.id, outcome)
            except DatabaseUnreachable:
                raise
            except DraftsmanError as error:
                until = self._pause(stored, error)
                if isinstance(error, Failure) and not is_answer(error):
                    silent[repository] = until
            else:
                if self._paused.pop(stored.id, None) is not None:
                    self._health.clear(f"event {stored.id}")

    async def _outcome(self, stored: StoredEvent, table: ForgeSettings) -> str:
        event = stored.event
        if event.author.casefold() == await self._own_login(stored.forge, event.project):
            return IGNORED
        try:
            return await on_event(EventContext(self._rt, stored.forge, table, event))
        except Failure as error:
            if error.http_status not in GONE:
                raise
            source = f"{stored.forge}/{event.project}#{event.number}"
            _log.warning("%s of %s is ignored: %s", event.kind, source, error)
            return IGNORED

    def _pause(self, stored: StoredEvent, error: DraftsmanError) -> float:
        """Process an event later; return the time, by the monotonic clock."""
        seconds = error.retry_after if isinstance(error, Failure) else None
        until = time.monotonic() + (RETRY if seconds is None else seconds)
        self._paused[stored.id] = until
        event = stored.event
        text = f"{event.kind} of {stored.forge}/{event.project}#{event.number}: {error}"
        self._health.problem(f"event {stored.id}", text)
        return until


class IssueReader:
    """Reads the labels and comments of issues in the registered repositories of a forge."""

    def __init__(self, rt: Runtime, name: str, source: Callable[[str, str], EventSource]) -> None:
        """Take the name of the forge, and a function that returns the events of a repository."""
        self._rt = rt
        self._name = name
        self._source = source
        self._since: dict[str, datetime] = {}

    async def reads(
        self, table: ForgeSettings
    ) -> dict[str, Callable[[], Awaitable[list[ForgeEvent]]]]:
        """Return the read of each repository: of its events since the last; raises Failure."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for target in map(IssueTarget.of, await self._rt.forge_events.asked_targets()):
            if target.forge == self._name and not target.is_pull:
                numbers[target.path].append(target.number)
        return {
            project: partial(self._read, table, project, numbers[project])
            for project in await self._projects(table)
        }

    async def _read(
        self, table: ForgeSettings, project: str, numbers: Sequence[int]
    ) -> list[ForgeEvent]:
        source = self._source(self._name, project)
        events: list[ForgeEvent] = []
        if table.issue_label is not None:
            events += await source.labeled_issues(table.issue_label)
        now = await self._rt.checkpoints.now()
        events += await source.issue_comments(self._since.get(project, now - FIRST), numbers)
        self._since[project] = now - OVERLAP
        return events

    async def _projects(self, table: ForgeSettings) -> list[str]:
        projects = [
            find_project(table.url, repo.remote_url)
            for repo in (await self._rt.repos.catalog()).repos
        ]
        return sorted({project.path.casefold() for project in projects if project is not None})
