"""An issue of a fake forge with its bot, and the events there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.runtime import Runtime
from draftsman_bots.forges.context import EventContext
from draftsman_bots.forges.events import on_event
from draftsman_testing.forges.server import FakeForge
from draftsman_testing.outbox import run_dispatcher, wait_until_delivered
from tests.bots.forges.forge_place import ForgePlace

LOGINS: Final = {name: f"acme:{name}" for name in ("anna", "ben", "carol")}
LABEL: Final = ForgeEvent(
    EventKind.LABELED_ISSUE,
    "acme/pay",
    7,
    "label:7:fix it:x",
    author="Anna",
    title="Refunds",
    text="They are rounded twice, see @ben",
    label="Fix it",
)


def comment(text: str, author: str = "ben", id: int = 1, **fields: Any) -> ForgeEvent:
    """Return the event of a comment."""
    kind = EventKind.ISSUE_COMMENT
    return replace(ForgeEvent(kind, "acme/pay", 7, f"comment:{id}", author, text=text), **fields)


class Issue:
    """An issue with its bot."""

    def __init__(self, place: ForgePlace, rt: Runtime) -> None:
        settings = rt.settings.model_copy(
            update={"forges": place.settings.forges, "http": place.settings.http}
        )
        self.place = place
        self.rt = replace(rt, settings=settings)

    async def on(self, event: ForgeEvent) -> str:
        """Process an event."""
        table = self.rt.settings.forges["acme"]
        return await on_event(EventContext(self.rt, "acme", table, event))

    async def delivered(self, job: int) -> list[str]:
        """Wait for the comments of a job; return all comments."""
        await wait_until_delivered(self.rt, job, self.place.channel)
        return [note.body for note in self.place.fake.world.comments()]


class ForgeTalk(ForgePlace):
    """An issue with its bot and people with logins."""

    takes_requests = True
    anyone_requests = False
    reports_changes = False
    accounts: Final = LOGINS

    def __init__(self, fake: FakeForge, **table: Any) -> None:
        super().__init__(fake, **table)
        self.targets = (self.target,)
        self._events: dict[str, ForgeEvent] = {}
        self._issue: Issue

    @asynccontextmanager
    async def running(self, rt: Runtime) -> AsyncIterator[None]:
        self._issue = Issue(self, rt)
        async with run_dispatcher(rt, self.channel):
            yield

    async def request(self, person: str, text: str) -> None:
        await self.say(person, f"@draftsman {text}")

    async def say(self, person: str, text: str) -> str:
        event = comment(text, person, len(self._events) + 1)
        self._events[event.key] = event
        await self._issue.on(event)
        return event.key

    async def edit(self, key: str, text: str) -> None:
        await self._issue.on(replace(self._events[key], key=f"{key}:2", text=text))

    async def delete(self, key: str) -> None:
        """Do nothing: a forge reports no deletions."""

    async def repeat(self, key: str) -> None:
        await self._issue.on(self._events[key])

    def told(self) -> list[str]:
        return [post.text for post in self.posts()]
