"""A process that only delivers to Slack.

python -m tests.bots.slack.dispatch DATABASE API_URL TOKEN TIMEOUT
"""

from __future__ import annotations

import asyncio
import sys

from draftsman_bots.slack.deliveries.channel import SlackChannel, client
from tests.core.deliveries.outbox.dispatch import deliver

if __name__ == "__main__":
    database, api_url, token, seconds = sys.argv[1:]
    timeout = float(seconds)
    channel = SlackChannel(client(token, api_url, timeout), timeout=timeout)
    asyncio.run(deliver(database, channel, timeout))
