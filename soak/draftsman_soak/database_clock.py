"""The database's clock, which a soak puts on and back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from draftsman.embedded import EmbeddedServer
from draftsman_soak.fault_injection import cut_connections, shift_clock
from draftsman_soak.ledger import retry_until_reachable


@dataclass(slots=True)
class DatabaseClock:
    """By how many seconds new sessions are ahead of the machine, and how far any ever was."""

    server: EmbeddedServer
    offset: float = 0.0
    max_offset: float = 0.0

    async def set(self, seconds: float) -> None:
        """Shift the clock for new sessions; those that there are keep theirs."""
        await retry_until_reachable(lambda: asyncio.to_thread(shift_clock, self.server, seconds))
        self.offset = seconds
        self.max_offset = max(self.max_offset, seconds)

    async def apply_to_all(self) -> None:
        """End every session, so that all have the same clock again."""
        await retry_until_reachable(lambda: asyncio.to_thread(cut_connections, self.server))

    async def shift(self, seconds: float) -> None:
        """Put the clock of all on, beyond every time that was ever written down."""
        await self.set(max(self.max_offset, self.offset + seconds))
        await self.apply_to_all()
