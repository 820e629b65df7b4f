"""Clock of the test database, shifted forward and back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from draftsman.database.embedded import EmbeddedServer
from draftsman_soak.fault_injection import cut_connections, shift_clock
from draftsman_soak.ledger import retry_until_reachable


@dataclass(slots=True)
class DatabaseClock:
    """The current and the largest offset of new sessions from the machine's clock, in seconds."""

    server: EmbeddedServer
    offset: float = 0.0
    max_offset: float = 0.0

    async def set(self, seconds: float) -> None:
        """Set the offset for new sessions; open sessions keep theirs."""
        await retry_until_reachable(lambda: asyncio.to_thread(shift_clock, self.server, seconds))
        self.offset = seconds
        self.max_offset = max(self.max_offset, seconds)

    async def apply_to_all(self) -> None:
        """End every session, so that all sessions have the same clock."""
        await retry_until_reachable(lambda: asyncio.to_thread(cut_connections, self.server))

    async def shift(self, seconds: float) -> None:
        """Advance the clock of all sessions beyond every time in the database."""
        await self.set(max(self.max_offset, self.offset + seconds))
        await self.apply_to_all()
