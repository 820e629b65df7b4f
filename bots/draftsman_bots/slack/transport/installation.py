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

from draftsman.deliveries.delivery import Unconfirmed
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.errors import Failure
from draftsman.processes.lifecycle import OutageGuard, StopSignal
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

    def __init__(
        self, health: BotHealth, client: AsyncWebClient, delivery_sender: DeliverySender
    ) -> None:
        self.stop = StopSignal(lambda: self._wake_up.set())
        self.on_resume: Callable[[], None] = lambda: None
        """Called when deliveries are resumed."""
        self._health = health
        self._client = client
        self._delivery_sender = delivery_sender
        self._lost = False
        self._restored = False
        self._losses = 0
        self._reason = ""
        self._wake_up = asyncio.Event()

    def mark_lost(self, reason: str) -> None:
        """Pause deliveries until Slack accepts the token again."""
        self._losses += 1
        if not self._lost:
            self._lost = True
            self._restored = False
            self._reason = reason
            self._health.problem(INSTALLATION, reason)
            self._wake_up.set()

    def mark_restored(self) -> None:
        """Resume paused deliveries: the token works, also if another process paused them."""
        self._restored = True
        self._wake_up.set()

    def record_result(self, method: str, result: Mapping[str, Any] | Failure | Unconfirmed) -> None:
        """Update the state from the result of a call."""
        scope = f"scope of {method}"
        if isinstance(result, Failure):
            if result.code == "missing_scope":
                if method not in OPTIONAL:
                    self._health.problem(scope, f"Slack rejects the bot's calls: {result}")
            elif result.code in ACCOUNT:
                self.mark_lost(f"Slack rejects the bot's calls: {result}")
        elif not isinstance(result, Unconfirmed):
            self._health.clear(scope)
            if self._lost:
                self._wake_up.set()

    async def run(self) -> None:
        """Pause deliveries, retry until Slack accepts the token, and resume them, until stopped."""
        outage = OutageGuard("the Slack account")
        attempts = 0

        async def pause() -> None:
            await self._delivery_sender.limits.pause("slack", ACCOUNT_PAUSE, self._reason)

        async def resume() -> None:
            losses = self._losses
            self._restored = False
            await self._delivery_sender.resume("slack")
            if self._losses == losses:  # no call was rejected in the meantime
                self._lost = False
                self._health.clear(INSTALLATION)
                self.on_resume()

        while not self.stop:
            if self._lost and attempts and not self._restored:
                self._restored = await _is_token_valid(self._client)
            if self._restored or self._lost:
                await outage.guard(resume if self._restored else pause)
            attempts = attempts + 1 if self._lost else 0
            delay = BACKOFF[min(attempts, len(BACKOFF)) - 1] if self._lost else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake_up.wait()
            self._wake_up.clear()


async def _is_token_valid(client: AsyncWebClient) -> bool:
    try:
        await client.auth_test()
    except (SlackApiError, *NETWORK):
        return False
    return True
