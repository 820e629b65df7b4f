"""Fixtures of the outbox's tests: a chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from draftsman.runtime import Runtime
from draftsman_testing.http_server import serving
from tests.core.deliveries.outbox.chat_harness import ChatHarness
from tests.support.chat import Chat


@pytest.fixture
async def chat(rt: Runtime) -> AsyncIterator[ChatHarness]:
    """Give a chat; a test can set a rule for its calls."""
    async with AsyncExitStack() as stack:
        opened: list[ChatHarness] = []
        url = await stack.enter_async_context(serving(lambda request: opened[0].answer(request)))
        opened.append(ChatHarness(rt, url, stack, Chat()))
        yield opened[0]
