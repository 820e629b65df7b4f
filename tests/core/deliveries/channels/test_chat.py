"""The contract of channels for an in-memory chat, the reference of the real adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from draftsman_testing.http_server import Reply, Request, serving
from tests.core.deliveries.channels.channel_contract import ChannelContract
from tests.support.chat import Chat, ChatChannel


class ChatChannelHarness:
    """A chat with injected faults."""

    finds = True
    cuts = True

    def __init__(self, chat: Chat, stack: AsyncExitStack) -> None:
        self._chat = chat
        self._stack = stack
        self._next: str | Reply = ""
        self.channel: ChatChannel

    async def answer(self, request: Request) -> Reply | None:
        """Serve a call with the configured fault."""
        fault = self._next
        self._next = ""
        if isinstance(fault, Reply):
            return fault
        reply = await self._chat.answer(request)
        return None if fault == "cut" else reply

    async def seen(self) -> list[tuple[str, str]]:
        """Return the posts."""
        return [(post.marker, post.text) for post in self._chat.posts.values()]

    async def drop_next_response(self) -> None:
        """Close the connection after the next call."""
        self._next = "cut"

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next call."""
        headers = (("retry-after", retry_after),) if retry_after else ()
        self._next = Reply(status, headers=headers)

    async def stop_listening(self) -> None:
        """Close the port."""
        await self._stack.aclose()


class TestChat(ChannelContract):
    """The contract."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChatChannelHarness]:
        stack = AsyncExitStack()
        harness = ChatChannelHarness(Chat(), stack)
        url = await stack.enter_async_context(serving(harness.answer))
        harness.channel = ChatChannel(url)
        yield harness
        await harness.channel.close()
        await stack.aclose()
