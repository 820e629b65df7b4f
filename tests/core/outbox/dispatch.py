"""A process that does nothing but deliver to a chat.

python -m tests.core.outbox.dispatch DATABASE CHAT
"""

from __future__ import annotations

import asyncio
import signal
import sys

from draftsman.runtime import wire
from draftsman.settings import NotificationSettings, Settings
from draftsman.store.db import Database
from tests.support.chat import ChatChannel

HASTY = NotificationSettings(
    max_attempts=100, base_delay=0.02, max_delay=0.2, timeout=1, lease=4, poll=0.2, per_target=8
)
"""Trying again at once: what is waited for in a test is work."""


async def main(database: str, chat: str) -> None:
    """Deliver until SIGTERM."""
    settings = Settings.model_validate({"database_url": database, "notifications": HASTY})
    db = Database(database, settings.database)
    await db.open()
    dispatcher = wire(settings, db, False).dispatcher([ChatChannel(chat, timeout=HASTY.timeout)])
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, dispatcher.stop.set)
    await dispatcher.run()
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
