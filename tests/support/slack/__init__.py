"""A fake Slack that the official SDK talks to unchanged: Web API, Socket Mode, HTTP deliveries.

    async with FakeSlack() as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        anna = slack.user("anna")
        general = slack.channel("general", [anna])
        ack = await slack.mention(anna, general, "fix the parser")

What people do returns the app's `Ack`. The fake refuses what Slack refuses, and misbehaves when it
is told to (`slack.faults`, `slack.sockets`, and `How` something is delivered). Its time is the
machine's, and `slack.later(seconds)` lets some pass.
"""

from __future__ import annotations

from tests.support.slack.event_delivery import Ack
from tests.support.slack.faults import Fault, error
from tests.support.slack.server import FakeSlack

__all__ = ["Ack", "FakeSlack", "Fault", "error"]
