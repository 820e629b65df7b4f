"""Refresher: loads the current view when the database changes, and posts the data.

It wakes on a notification, on a request of the user, or every second, reads new events, and
reloads the view only if something changed or its poll interval is over. Many changes thus cost
at most one load in 250 ms, and an idle dashboard one small query a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from textual.message import Message

from draftsman.errors import (
    DatabaseUnreachable,
    DraftsmanError,
    EmbeddedServerError,
    SchemaOutdated,
)
from draftsman.events.event import PAGE_SIZE, Event
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.attention.attention import AttentionCount, AttentionPoller
from draftsman_tui.dashboard.frame.connection import Connection, DatabaseClock
from draftsman_tui.dashboard.frame.messages import (
    AttentionUpdated,
    ConnectionLost,
    LoadRejected,
    Reconnected,
    RowsLoaded,
    StatsUpdated,
)
from draftsman_tui.dashboard.frame.stats_poller import StatsPoller
from draftsman_tui.dashboard.tables.resource import Query, Resource

T = TypeVar("T")
MIN_INTERVAL: Final = 0.25
"""Seconds between loads while data changes."""
IDLE_INTERVAL: Final = 1.0
"""Seconds between event queries without notifications."""
NO_VIEW_INTERVAL: Final = 10.0
"""Poll interval without a view."""
FIRST_RETRY: Final = 1.0
"""Seconds between the first two attempts to connect; the delay doubles each time."""
LONGEST_RETRY: Final = 10.0
"""Maximum seconds between attempts to connect."""
LOAD_TIMEOUT: Final = 1.0
"""Seconds after which a slow load triggers a connection test; the pool's timeout is longer."""
PROBE_TIMEOUT: Final = 1.0
"""Timeout of a connection test, in seconds."""


class Loader(Protocol):
    """Loader of the data that a screen shows."""

    @property
    def poll_interval(self) -> float:
        """Maximum seconds between loads without events."""

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        """Return whether the events may have changed the data.

        An empty list means that a notified change has no event yet.
        """

    async def read(self, rt: Runtime, now: datetime) -> Message:
        """Load the data as a message; `now` is of the database's clock."""


@dataclass(frozen=True, slots=True)
class TableLoader:
    """Loader of a table page."""

    resource: Resource[Any]
    query: Query

    @property
    def poll_interval(self) -> float:
        return self.resource.poll_interval

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        return self.resource.follows_events  # any event may change a row

    async def read(self, rt: Runtime, now: datetime) -> RowsLoaded:
        query = replace(self.query, now=now)
        return RowsLoaded(self.resource, query, await self.resource.fetch(rt, query))


class Refresher:
    """Polls the database for a dashboard, and posts messages."""

    def __init__(
        self,
        connection: Connection,
        post: Callable[[Message], object],
        attention_poller: AttentionPoller | None = None,
    ) -> None:
        self.clock = DatabaseClock()
        self._connection = connection
        self._post = post
        self._stats_poller = StatsPoller(connection, self.clock, post)
        self._attention_poller = attention_poller
        self.attention: AttentionCount | None = None
        """Questions that wait for the user; None until they are counted."""
        self.lost: ConnectionLost | None = None
        """Set while the database is unreachable."""
        self._loader: Loader | None = None
        self._preview: Loader | None = None
        self._preview_read_at = -math.inf
        self._requested = asyncio.Event()
        self._woken = asyncio.Event()
        self._is_notified = False
        """Whether a notification arrived since the last poll."""
        self._cursor: tuple[int, int, int] | None = None
        self._read_at = -NO_VIEW_INTERVAL
        self._loaded_at: float | None = None
        """Monotonic time of the last successful poll."""

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return self.clock.now

    @property
    def last_stats(self) -> StatsUpdated | None:
        """The last statistics."""
        return self._stats_poller.last

    def show(self, loader: Loader | None) -> None:
        """Switch to another loader, and load at once."""
        self._loader = loader
        self.refresh()

    def show_preview(self, loader: Loader | None) -> None:
        """Load a preview as well, beside the data of the view; None: no preview."""
        self._preview = loader
        self._preview_read_at = -math.inf
        if loader is not None:
            self._woken.set()

    def refresh(self) -> None:
        """Load now."""
        self._requested.set()
        self._woken.set()

    def _notify(self) -> None:
        self._is_notified = True
        self._woken.set()

    def request_stats(self) -> None:
        """Count soon, after a change without an event, such as a started or stopped worker."""
        self._stats_poller.request()

    async def connect(self, connect: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `connect`, which is retried while the database is unreachable.

        Raises SchemaOutdated, EmbeddedServerError and the errors of the configuration.
        """
        delay = FIRST_RETRY
        while True:
            self._requested.clear()
            try:
                result = await connect()
            except (EmbeddedServerError, SchemaOutdated):
                raise
            except DatabaseUnreachable as error:
                lost = ConnectionLost(str(error), time.monotonic() + delay)
                delay = await self._wait_lost(lost, delay)
            else:
                self.lost = None
                return result

    async def run(self) -> None:
        """Poll until canceled, reconnecting to a lost database."""
        listener = self._connection.rt.listener(lambda *_: self._notify())
        listening = asyncio.create_task(listener.run())
        polling = asyncio.create_task(self._stats_poller.run())
        try:
            await self._poll_forever()
        finally:
            listener.stop.set()
            polling.cancel()
            await asyncio.gather(listening, polling, return_exceptions=True)

    async def _poll_forever(self) -> None:
        delay = FIRST_RETRY
        while True:
            try:
                changed = await self._poll_with_timeout()
            except DatabaseUnreachable as error:
                self._read_at = -math.inf  # requested data that was not read is due at once
                delay = await self._wait_lost(self._connection_lost(error, delay), delay)
                await self._restart_embedded()
                continue
            if self.lost is not None:
                self._post(Reconnected())
            delay = FIRST_RETRY
            self.lost = None
            self._loaded_at = time.monotonic()
            await self._pause(changed)

    async def _wait_lost(self, lost: ConnectionLost, delay: float) -> float:
        """Show that the connection is lost until the next attempt; return the delay after it."""
        self.lost = lost
        self._post(lost)
        await self._wait(delay)
        return min(2 * delay, LONGEST_RETRY)

    def _connection_lost(self, error: DatabaseUnreachable, delay: float) -> ConnectionLost:
        retry_at = time.monotonic() + delay
        embedded = self._connection.rt.embedded
        return ConnectionLost(str(error), retry_at, self._loaded_at, embedded=embedded)

    async def _poll_with_timeout(self) -> bool:
        """Poll; fail as soon as no connection is possible, before the pool's timeout.

        Raises DatabaseUnreachable. Waits for a database that is reachable but slow.
        """
        if self.lost is not None:
            await self._probe()
        task = asyncio.create_task(self.poll())
        timeout = LOAD_TIMEOUT
        try:
            while not (await asyncio.wait({task}, timeout=timeout))[0]:
                await self._probe()
                timeout *= 2
            return await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _probe(self) -> None:
        """Test the connection; raises DatabaseUnreachable."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                conn = await self._connection.rt.db.dedicated_connection()
        except TimeoutError:
            raise DatabaseUnreachable(f"no connection within {PROBE_TIMEOUT:.0f} s") from None
        await conn.close()

    async def poll(self) -> bool:
        """Poll once; return whether there are new events."""
        requested = self._requested.is_set()
        notified = self._is_notified
        first = self._cursor is None
        self._requested.clear()
        self._woken.clear()
        self._is_notified = False
        events = await self._new_events()
        changed = bool(events)
        affected = (changed or notified) and self._affects_view(events)
        if requested or affected or self._is_due(self._read_at, self._view_interval):
            await self._read()
        await self._read_preview(events)
        await self._count_questions(events)
        if changed or first:
            self._stats_poller.changed()
        return changed

    async def _new_events(self) -> list[Event]:
        read_model = self._connection.rt.read_model
        if self._cursor is None:
            self._cursor = await read_model.end_cursor()
            return []
        events = await read_model.events(self._cursor)
        if events:
            self._cursor = events[-1].cursor
        if len(events) == PAGE_SIZE:  # too far behind: continue at the present
            self._cursor = await read_model.end_cursor()
        return events

    async def _count_questions(self, events: list[Event]) -> None:
        if self._attention_poller is not None:
            attention = await self._attention_poller.poll(events)
            if attention is not None:
                self.attention = attention
                self._post(AttentionUpdated(attention))

    def _affects_view(self, events: list[Event]) -> bool:
        if self._loader is None:
            return False
        # after a full page, events may have been skipped
        return len(events) == PAGE_SIZE or self._loader.is_affected_by(events)

    async def _read(self) -> None:
        if self._loader is not None:
            message = await self._message_of(self._loader)
            if not isinstance(message, LoadRejected):
                self._loaded_at = time.monotonic()
            self._post(message)
            self._read_at = time.monotonic()

    async def _message_of(self, loader: Loader) -> Message:
        """Return what a loader reads; raises DatabaseUnreachable."""
        try:
            return await loader.read(self._connection.rt, self.now)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            return LoadRejected(str(error))

    async def _read_preview(self, events: list[Event]) -> None:
        """Load the preview if it is new, or if the events may have changed it."""
        preview = self._preview
        if preview is None or not (
            self._is_due(self._preview_read_at, preview.poll_interval)
            or (events and preview.is_affected_by(events))
        ):
            return
        message = await self._message_of(preview)
        if isinstance(message, LoadRejected):
            return  # the table shows the error of its row
        self._preview_read_at = time.monotonic()
        if preview is self._preview:
            self._post(message)

    @property
    def _view_interval(self) -> float:
        return self._loader.poll_interval if self._loader else NO_VIEW_INTERVAL

    @staticmethod
    def _is_due(since: float, seconds: float) -> bool:
        return time.monotonic() - since >= seconds

    async def _pause(self, changed: bool) -> None:
        """Wait for the next poll; notifications end the wait after a minimum, requests at once."""
        await self._wait(MIN_INTERVAL)
        if not changed and not self._woken.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_INTERVAL - MIN_INTERVAL):
                    await self._woken.wait()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._requested.wait()

    async def _restart_embedded(self) -> None:
        """Restart a stopped embedded server; if that fails, the next poll reports the error."""
        rt = self._connection.rt
        if rt.embedded:
            with contextlib.suppress(DraftsmanError):
                await rt.revive()
