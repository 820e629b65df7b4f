"""Delivery process: a dispatcher and a notification listener without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from draftsman.database.database import Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.settings.notifications import NotificationSettings
from draftsman.worker.registry.service import SessionLock


class DeliveryProcess:
    """Sends the deliveries of the channels that its process serves."""

    def __init__(
        self,
        delivery_sender: DeliverySender,
        channels: Sequence[Channel],
        settings: NotificationSettings,
        db: Database,
    ) -> None:
        self._lock = SessionLock()
        self._listener = NotificationListener(db, self._on_notification, self._lock.hold)
        self._dispatcher = DeliveryDispatcher(delivery_sender, channels, settings, self.sender)

    def sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._lock.number if self._listener.lock_held else None

    async def run(self) -> None:
        """Send until stopped, then finish the deliveries under way."""
        listening = asyncio.create_task(self._listener.run())
        try:
            await self._dispatcher.run()
        finally:
            self._listener.stop.set()
            await listening

    def wake(self) -> None:
        """Claim due deliveries at once."""
        self._dispatcher.wake()

    def stop(self) -> None:
        """Stop claiming."""
        self._dispatcher.stop.set()

    def _on_notification(self, channel: str, payload: str) -> None:
        if channel in ("", "draftsman_deliveries"):
            self._dispatcher.wake(payload)
