"""The database's clock, which a soak puts on and back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from draftsman.embedded import EmbeddedServer
from draftsman_tui.soak.ledger import insist


@dataclass(slots=True)
class Clock:
    """By how many seconds new sessions are ahead of the machine, and how far any ever was."""

    server: EmbeddedServer
    offset: float = 0.0
    furthest: float = 0.0

    async def set(self, seconds: float) -> None:
        """Shift the clock for new sessions; those that there are keep theirs."""
        await insist(lambda: asyncio.to_thread(self.server.shift_clock, seconds))
        self.offset = seconds
        self.furthest = max(self.furthest, seconds)

    async def everywhere(self) -> None:
        """End every session, so that all have the same clock again."""
        await insist(lambda: asyncio.to_thread(self.server.cut_connections))

    async def put_on(self, seconds: float) -> None:
        """Put the clock of all on, beyond every time that was ever written down."""
        await self.set(max(self.furthest, self.offset + seconds))
        await self.everywhere()
