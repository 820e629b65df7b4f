"""What sends in a process without a worker: a dispatcher, and an ear that wakes it."""

from __future__ import annotations

import asyncio

from draftsman.loops.dispatcher import Dispatcher
from draftsman.loops.ear import Ear
from draftsman.store.db import Database


class Mailroom:
    """Sends the deliveries of the channels that its process serves."""

    def __init__(self, dispatcher: Dispatcher, db: Database, listen_url: str | None) -> None:
        self._dispatcher = dispatcher
        self._ear = Ear(db, listen_url, self._hear)

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
