"""What sends in a process without a worker: a dispatcher, and a session that wakes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from draftsman.loops.dispatcher import Dispatcher
from draftsman.loops.ear import Ear
from draftsman.ports import Channel
from draftsman.services.deliver import Deliver
from draftsman.services.presence import SessionLock
from draftsman.settings import NotificationSettings
from draftsman.store.db import Database


class Mailroom:
    """Sends the deliveries of the channels that its process serves."""

    def __init__(
        self,
        deliver: Deliver,
        channels: Sequence[Channel],
        settings: NotificationSettings,
        db: Database,
        listen_url: str | None,
    ) -> None:
        self._lock = SessionLock()
        self._ear = Ear(db, listen_url, self._hear, self._lock.hold)
        self._dispatcher = Dispatcher(deliver, channels, settings, self.sender)

    def sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._lock.number if self._ear.holding else None

    async def run(self) -> None:
        """Send until stopped, then finish what is on its way."""
        hearing = asyncio.create_task(self._ear.run())
        try:
            await self._dispatcher.run()
        finally:
            self._ear.stop.set()
            await hearing

    def wake(self) -> None:
        """Look at once for what is due."""
        self._dispatcher.wake()

    def stop(self) -> None:
        """Begin nothing new."""
        self._dispatcher.stop.set()

    def _hear(self, channel: str, payload: str) -> None:
        if channel in ("", "draftsman_deliveries"):
            self._dispatcher.wake(payload)
