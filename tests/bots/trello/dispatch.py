"""Process that only delivers to Trello.

python -m tests.bots.trello.dispatch DATABASE API_URL KEY TOKEN TIMEOUT
"""

from __future__ import annotations

import asyncio
import sys

from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.transport.client import connect
from tests.bots.trello.accounts import settings
from tests.core.deliveries.outbox.dispatch import deliver


async def main(database: str, api_url: str, key: str, token: str, seconds: str) -> None:
    """Deliver to cards."""
    timeout = float(seconds)
    async with connect(settings(api_url), Credentials(key, token), timeout=timeout) as account:
        await deliver(database, TrelloChannel(account), timeout)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
