"""Delivery process: a dispatcher and a notification listener without a worker."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.processes.components import ComponentGroup
from draftsman.settings.notifications import NotificationSettings
from draftsman.worker.registry.service import SessionLock


class DeliveryProcess:
    """A component that sends the deliveries of the channels that its process serves."""

    def __init__(
        self,
        *,
        db: Database,
        delivery_sender: DeliverySender,
        channels: Sequence[Channel],
        settings: NotificationSettings,
    ) -> None:
        self._lock = SessionLock()
        self._listener = NotificationListener(db, self._on_notification, self._lock.hold)
        self._dispatcher = DeliveryDispatcher(
            delivery_sender, channels, settings, sender=self.sender
        )
        self._components = ComponentGroup([self._dispatcher], [self._listener])
        self.stop = self._components.stop

    def sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._lock.number if self._listener.lock_held else None

    async def run(self) -> None:
        """Send until stopped, then finish the deliveries under way."""
        await self._components.run()

    def wake(self) -> None:
        """Claim due deliveries at once."""
        self._dispatcher.wake()

    def _on_notification(self, channel: str, payload: str) -> None:
        if channel in ("", "draftsman_deliveries"):
            self._dispatcher.wake(payload)
