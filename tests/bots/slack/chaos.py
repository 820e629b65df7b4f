"""Slack with random faults, from a seed, injected by its own server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from draftsman_testing.slack import FakeSlack, Fault, error
from tests.core.deliveries.outbox.chaos import VisibleMessage

RATES: Final = {
    Fault.RATE_LIMIT(0.02): 0.08,
    Fault.DROP_BEFORE: 0.05,
    Fault.DROP_AFTER: 0.1,
    Fault.HTML_503: 0.05,
    Fault.HTML_AFTER: 0.05,
    Fault.GARBAGE_AFTER: 0.04,
    Fault.CUT_AFTER: 0.04,
    error("internal_error"): 0.04,
}


class SlackBackend:
    """A workspace with faults."""

    def __init__(self, seed: int, channels: int) -> None:
        self.known = {fault.name for fault in RATES}
        self.fault_counts: Counter[str] = Counter()
        self._slack = FakeSlack()
        self._seed = seed
        self._channels = channels
        self._rooms: list[str] = []

    async def open(self, stack: AsyncExitStack) -> Sequence[str]:
        """Serve the workspace."""
        slack = await stack.enter_async_context(self._slack)
        self._rooms = [slack.channel(f"room-{n}") for n in range(self._channels)]
        slack.faults.random(self._seed, RATES)
        self.fault_counts = slack.faults.seen
        return "tests.bots.slack.dispatch", slack.api_url, slack.bot_token

    def target(self, n: int) -> str:
        return f"slack:{self._rooms[n % self._channels]}"

    async def reach(self, count: int) -> None:
        """Wait until the channels have this many messages."""
        rooms = [self._slack.world.channels[room].messages for room in self._rooms]
        while sum(map(len, rooms)) < count:
            await self._slack.wait_for_call()

    def seen(self) -> list[VisibleMessage]:
        """Return the messages of every channel, by thread."""
        return [
            VisibleMessage(
                f"{room} {message.get('thread_ts', message['ts'])}",
                message["metadata"]["event_payload"]["delivery_id"],
                message["text"],
            )
            for room in self._rooms
            for message in self._slack.world.channels[room].messages.values()
        ]
