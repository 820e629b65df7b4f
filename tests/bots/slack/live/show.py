"""A process that only shows runs in Slack.

python -m tests.bots.slack.live.show DATABASE API_URL TOKEN TEAM BOT_USER
"""

from __future__ import annotations

import asyncio
import sys

from draftsman.database.database import Database
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import ENUMS, wire
from draftsman.settings import settings_model
from draftsman_bots.slack.deliveries.channel import client
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.live.loop import LiveThreadLoop
from draftsman_testing.people import PEOPLE


async def main(database: str, api_url: str, token: str, team: str, bot_user: str) -> None:
    """Show runs until SIGTERM, as a bot does."""
    settings = settings_model().model_validate({"database_url": database, "people": PEOPLE})
    db = Database(database, settings.database, enums=ENUMS)
    identity = Identity()
    identity.update({"team_id": team, "user_id": bot_user, "bot_id": "B000000001"})
    async with shutdown_signals() as signals:
        await db.open()
        try:
            rt = wire(settings, db, False)
            loop = LiveThreadLoop(
                LiveThreads(db, rt.policy, "slack"),
                client(token, api_url, 10.0),
                identity,
                BotHealth(),
                timeout=10.0,
                streams=True,
            )
            with signals.stopping(loop.stop):
                await loop.run()
        finally:
            await db.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
