"""A chat, a proxy before it, and dispatchers that deliver to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.target import parse
from draftsman.runtime import Runtime
from draftsman_testing.http_server import Reply, Request
from draftsman_testing.outbox import FAST, LIVE, deliveries_of, running
from draftsman_testing.waits import until
from tests.support.chat import Chat, ChatChannel

CHAT: dict[str, Any] = {"notify": ("slack:C1",)}
Rule = Callable[[Request], Awaitable[Reply | bool | None]]


class ChatHarness:
    """A chat, the rule for its calls, and running dispatchers."""

    def __init__(self, rt: Runtime, url: str, stack: AsyncExitStack, chat: Chat) -> None:
        self.rt = rt
        self.url = url
        self.chat = chat
        self.rule: Rule | None = None
        self._stack = stack

    async def answer(self, request: Request) -> Reply | None:
        """Serve a call by the rule; True: as usual."""
        if self.rule is not None and (reply := await self.rule(request)) is not True:
            return reply if isinstance(reply, Reply) else None
        return await self.chat.answer(request)

    def dispatcher(self, fallback: str | None = None, **channel: Any) -> DeliveryDispatcher:
        """Make a dispatcher without running it."""
        fallback_target = parse(fallback) if fallback else None
        deliver = DeliverySender(
            db=self.rt.db, policy=self.rt.policy, settings=FAST, fallback=fallback_target
        )
        return DeliveryDispatcher(deliver, [ChatChannel(self.url, **channel)], FAST)

    async def open(self, fallback: str | None = None, **channel: Any) -> DeliveryDispatcher:
        """Run a dispatcher to the end of the test."""
        return await self._stack.enter_async_context(running(self.dispatcher(fallback, **channel)))

    async def quiet(self, job: int) -> None:
        """Wait until every message of a job is sent to the chat."""

        async def look() -> bool:
            deliveries = await deliveries_of(self.rt, job)
            return not [
                delivery
                for delivery in deliveries
                if delivery.status in LIVE and delivery.channel == "slack"
            ]

        await until(look, f"the deliveries of D-{job}")
