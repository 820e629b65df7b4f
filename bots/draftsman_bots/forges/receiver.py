"""Reads of forges, and storage of their events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.forges.api.connection import forge_at
from draftsman.forges.follow_up import TrackedPull, reopened
from draftsman.forges.forge import EventSource
from draftsman.forges.forge_event import PEOPLE_KINDS, ForgeEvent
from draftsman_bots.forges.event_replies import delete_branches, write_answers
from draftsman_bots.forges.events import classify
from draftsman_bots.forges.isolation import LIMITED, RepoIsolation
from draftsman_bots.forges.people import IssueReader
from draftsman_bots.process.health import WebhookHealth

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

RECONCILE: Final = 300.0
"""Seconds between two reads with webhooks, which may be lost and do not tell of conflicts, and
between two reads of closed pull requests, which are rarely opened again."""
_log = logging.getLogger(__name__)


class ForgeHealth(WebhookHealth):
    """Health and metrics of the receipt of events of forges."""

    def __init__(self) -> None:
        super().__init__(
            "forge", "source", "New events of forges, by forge and source (webhook or poll)."
        )


class ForgeReceiver:
    """Receives the events of the configured forges; several processes may, without harm."""

    def __init__(self, rt: Runtime) -> None:
        self.health = ForgeHealth()
        self._rt = rt
        self._forges = rt.settings.read_forges
        self._sources: dict[tuple[str, str], EventSource] = {}
        self._issues = {name: IssueReader(rt, name, self._source) for name in self._forges}
        self._own_logins: dict[str, str] = {}
        self._due: dict[str, float] = dict.fromkeys(self._forges, 0.0)
        self._closed_due: dict[str, float] = dict.fromkeys(self._forges, 0.0)
        self._paused: dict[str, float] = dict.fromkeys(self._forges, 0.0)
        self._repos = {name: RepoIsolation(name, self.health) for name in self._forges}
        self._changed: set[tuple[str, str]] = set()

    def changed(self, name: str, project: str) -> None:
        """Read the pull requests of a repository with the next `read_due`."""
        self._changed.add((name, project))

    async def receive(self, name: str, source: str, events: Sequence[ForgeEvent]) -> int:
        """Store events; return the number of those that are new."""
        login = self._own_logins.get(name)
        mention = self._forges[name].mention
        marked = [
            replace(event, is_bot=True)
            if event.is_own or (login and event.author.casefold() == login)
            else classify(event, mention)
            for event in events
            if not (event.is_own and event.kind in PEOPLE_KINDS)
        ]
        new = await self._rt.forge_events.receive(name, marked)
        self.health.count(name, source, new)
        return new

    async def read_due(self, *, polls: bool) -> None:
        """Read the repositories of webhooks and, with `polls`, all forges that are due."""
        reads = (self._read_due(name, polls=polls) for name in self._forges)
        for result in await asyncio.gather(*reads, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _read_due(self, name: str, *, polls: bool) -> None:
        """Read a forge; only DatabaseUnreachable is raised."""
        forge = self._forges[name]
        now = time.monotonic()
        due = polls and self._due[name] <= now
        changed = {project for other, project in self._changed if other == name}
        if self._paused[name] > now:
            return
        if due:
            self._due[name] = now + (forge.poll if forge.events == "poll" else RECONCILE)
        self._changed -= {(name, project) for project in changed}
        repos = self._repos[name]
        repos.begin()
        try:
            if due or changed:
                await self._read(name, None if due else changed)
            if polls:
                await write_answers(self._rt, name, self.own_login, repos.attempt)
                await delete_branches(self._rt, name, repos.attempt)
            is_known = repos.end()
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            self._pause(name, error)
        else:
            if is_known:
                self.health.clear(name)

    async def _read(self, name: str, only: set[str] | None) -> None:
        """Read the pull requests of jobs, and all issues or only some repositories."""
        pulls = await self._rt.forge_events.open_pulls(name)
        now = time.monotonic()
        if only is not None or self._closed_due[name] <= now:
            pulls += await self._rt.forge_events.closed_pulls(name)
            if only is None:
                self._closed_due[name] = now + RECONCILE
        attempt = self._repos[name].attempt
        for pull in pulls:
            if only is None or pull.project in only:
                work = partial(self._store, name, partial(self._pull, name, pull))
                await attempt(pull.project, f", pull request {pull.number}", work)
        if only is None:
            reads = await self._issues[name].reads(self._forges[name])
            for project, read in reads.items():
                await attempt(project, ", issues", partial(self._store, name, read))

    async def _store(self, name: str, read: Callable[[], Awaitable[Sequence[ForgeEvent]]]) -> None:
        """Store the events of a pull request or repository."""
        await self.receive(name, "poll", await read())

    async def _pull(self, name: str, pull: TrackedPull) -> Sequence[ForgeEvent]:
        await self.own_login(name, pull.project)
        seen = await self._source(name, pull.project).pull(pull.number)
        if seen.head not in (None, pull.tip):
            await self._rt.forge_events.note_tip(pull, seen.head)
        again = reopened(pull, seen.events)
        return seen.events if again is None else [again, *seen.events]

    async def own_login(self, name: str, project: str) -> str:
        """Return the login of draftsman on a forge, in lower case; raises Failure."""
        if name not in self._own_logins:
            account = await forge_at(self._rt.settings, name, project).account()
            self._own_logins[name] = account.name.casefold()
        return self._own_logins[name]

    def _source(self, name: str, project: str) -> EventSource:
        key = (name, project)
        if key not in self._sources:
            self._sources[key] = forge_at(self._rt.settings, name, project).events()
        return self._sources[key]

    def _pause(self, name: str, error: DraftsmanError) -> None:
        """Read the forge later: at the time that it named, as after a rate limit."""
        seconds = error.retry_after if isinstance(error, Failure) else None
        self._paused[name] = time.monotonic() + (LIMITED if seconds is None else seconds)
        self.health.problem(name, f"forge {name} cannot be read: {error}")
