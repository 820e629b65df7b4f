"""State of the app's installation: deliveries are paused while Slack rejects the token.

A rejected call or an event of Slack marks the installation as lost. Then auth.test is called until
it succeeds, and the paused deliveries resume without a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.domain.messages.delivery import ChannelName, Unconfirmed
from draftsman.errors import Failure
from draftsman.loops.lifecycle import OutageGuard
from draftsman.services.deliveries.delivery_sender import DeliverySender
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import NETWORK
from draftsman_bots.slack.transport.api_errors import ACCOUNT, ACCOUNT_PAUSE

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

INSTALLATION: Final = "installation"
BACKOFF: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds between calls of auth.test; the last repeats."""
OPTIONAL: Final = frozenset(
    {"conversations.history", "conversations.members", "conversations.replies"}
)
"""Methods that the minimal manifest has no scope for."""


class Installation:
    """The state of the installation, and its recovery."""

    def __init__(self, health: BotHealth) -> None:
        self._health = health
        self._lost = self._back = self._ended = False
        self._losses = 0
        self._why = ""
        self._ring = asyncio.Event()

    def mark_lost(self, why: str) -> None:
        """Pause deliveries until Slack accepts the token again."""
        self._losses += 1
        if not self._lost:
            self._lost, self._back, self._why = True, False, why
            self._health.problem(INSTALLATION, why)
            self._ring.set()

    def mark_restored(self) -> None:
        """Resume paused deliveries: the token works, also if another process paused them."""
        self._back = True
        self._ring.set()

    def record_result(self, method: str, found: Mapping[str, Any] | Failure | Unconfirmed) -> None:
        """Update the state from the result of a call."""
        scope = f"scope of {method}"
        if isinstance(found, Failure):
            if found.code == "missing_scope":
                if method not in OPTIONAL:
                    self._health.problem(scope, f"Slack rejects the bot's calls: {found}")
            elif found.code in ACCOUNT:
                self.mark_lost(f"Slack rejects the bot's calls: {found}")
        elif not isinstance(found, Unconfirmed):
            self._health.clear(scope)
            if self._lost:
                self._ring.set()

    def end(self) -> None:
        """Stop `run`."""
        self._ended = True
        self._ring.set()

    async def run(
        self, client: AsyncWebClient, deliver: DeliverySender, wake: Callable[[], None]
    ) -> None:
        """Pause deliveries, retry until Slack accepts the token, and resume them, until `end`."""
        outage, tries = OutageGuard("the Slack account"), 0

        async def pause() -> None:
            await deliver.pause(ChannelName.SLACK, ACCOUNT_PAUSE, self._why)

        async def let_go() -> None:
            losses, self._back = self._losses, False
            await deliver.resume(ChannelName.SLACK)
            if self._losses == losses:  # nothing was refused in the meantime
                self._lost = False
                self._health.clear(INSTALLATION)
                wake()

        while not self._ended:
            if self._lost and tries and not self._back:
                self._back = await _works(client)
            if self._back or self._lost:
                await outage.guard(let_go if self._back else pause)
            tries = tries + 1 if self._lost else 0
            delay = BACKOFF[min(tries, len(BACKOFF)) - 1] if self._lost else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ring.wait(), delay)
            self._ring.clear()


async def _works(client: AsyncWebClient) -> bool:
    try:
        await client.auth_test()
    except (SlackApiError, *NETWORK):
        return False
    return True
