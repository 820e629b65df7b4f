"""The contract of channels for an in-memory chat, the reference of the real adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.http_server import Reply, Request, serving
from tests.support.chat import Chat, ChatChannel

REFUSALS = {
    Fault.RATE_LIMIT: Reply(429, headers=(("retry-after", f"{RETRY_AFTER:.0f}"),)),
    Fault.REFUSED: Reply(400),
}


class ChatEndpoint:
    """A chat with faults."""

    target = "slack:ops"
    missing = "ref"
    finds = True
    faults = frozenset({Fault.LOST_REPLY, Fault.UNREACHABLE, *REFUSALS})

    def __init__(self, chat: Chat, stack: AsyncExitStack) -> None:
        self._chat = chat
        self._stack = stack
        self._next: Fault | None = None
        self.channel: ChatChannel

    async def answer(self, request: Request) -> Reply | None:
        """Serve a call."""
        fault = self._next
        self._next = None
        if fault in REFUSALS:
            return REFUSALS[fault]
        reply = await self._chat.answer(request)
        return None if fault is Fault.LOST_REPLY else reply

    def posts(self) -> list[Post]:
        return [Post(post.marker, post.text) for post in self._chat.posts.values()]

    async def fail(self, fault: Fault) -> None:
        if fault is Fault.UNREACHABLE:
            await self._stack.aclose()
        self._next = fault


class TestChat(ChannelContract):
    """The contract."""

    @pytest.fixture
    async def place(self) -> AsyncIterator[ChatEndpoint]:
        stack = AsyncExitStack()
        endpoint = ChatEndpoint(Chat(), stack)
        url = await stack.enter_async_context(serving(endpoint.answer))
        endpoint.channel = ChatChannel(url)
        yield endpoint
        await endpoint.channel.close()
        await stack.aclose()
