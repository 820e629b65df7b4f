"""What sends in a process without a worker: a dispatcher, and a session that wakes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
from draftsman.loops.notification_listener import NotificationListener
from draftsman.ports import Channel
from draftsman.services.deliveries.delivery_sender import DeliverySender
from draftsman.services.runs.worker_registry import SessionLock
from draftsman.settings import NotificationSettings
from draftsman.store.postgres.database import Database


class DeliveryProcess:
    """Sends the deliveries of the channels that its process serves."""

    def __init__(
        self,
        deliver: DeliverySender,
        channels: Sequence[Channel],
        settings: NotificationSettings,
        db: Database,
        listen_url: str | None,
    ) -> None:
        self._lock = SessionLock()
        self._ear = NotificationListener(db, listen_url, self._hear, self._lock.hold)
        self._dispatcher = DeliveryDispatcher(deliver, channels, settings, self.sender)

    def sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._lock.number if self._ear.lock_held else None

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
