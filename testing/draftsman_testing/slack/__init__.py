"""A fake Slack for the unchanged official SDK: Web API, Socket Mode, HTTP deliveries.

    async with FakeSlack() as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        anna = slack.user("anna")
        general = slack.channel("general", [anna])
        ack = await slack.mention(anna, general, "fix the parser")

Interactions of people return the app's `Ack`. The fake returns Slack's errors, and injects faults
on request (`slack.faults`, `slack.sockets`, and the `DeliveryOptions` of a delivery). Its clock
is the machine's; `slack.later(seconds)` advances it.
"""

from __future__ import annotations

from draftsman_testing.slack.event_delivery import Ack
from draftsman_testing.slack.faults import Fault, error
from draftsman_testing.slack.server import FakeSlack

__all__ = ["Ack", "FakeSlack", "Fault", "error"]
