"""A process that does nothing but deliver to a chat.

python -m tests.core.deliveries.outbox.dispatch DATABASE CHAT TIMEOUT [LEASE [RATE]]
"""

from __future__ import annotations

import asyncio
import sys

from draftsman.database.database import Database
from draftsman.deliveries.channel import Channel
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import ENUMS, wire
from draftsman.settings import settings_model
from draftsman.settings.notifications import NotificationSettings
from tests.support.chat import ChatChannel


def short_timeouts(timeout: float, lease: float | None = None) -> NotificationSettings:
    """Return settings that retry at once."""
    return NotificationSettings(
        max_attempts=100,
        base_delay=0.02,
        max_delay=0.2,
        timeout=timeout,
        lease=lease or timeout * 4,
        poll=0.2,
        per_target=8,
    )


async def deliver(
    database: str, channel: Channel, timeout: float, lease: float | None = None
) -> None:
    """Deliver until SIGTERM, as a bot does."""
    tables = {"database_url": database, "notifications": short_timeouts(timeout, lease)}
    settings = settings_model().model_validate(tables)
    db = Database(database, settings.database, enums=ENUMS)
    async with shutdown_signals() as signals:
        try:
            await db.open()
            process = wire(settings, db, False).delivery_process([channel])
            with signals.stopping(process.stop):
                await process.run()
        finally:
            await db.close()


async def main(database: str, chat: str, *seconds: str) -> None:
    """Deliver to a chat; a rate limits its calls."""
    timeout, lease, rate = (*map(float, seconds), None, None)[:3]
    assert timeout is not None
    await deliver(database, ChatChannel(chat, timeout, rate), timeout, lease)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
