"""The contracts of channels, for a room of a chat server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from chat_server import Room, room
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.conversation_contract import ConversationContract
from draftsman_testing.channel.delivery_contract import DeliveryContract


@pytest.fixture
async def place() -> AsyncIterator[Room]:
    async with room() as place:
        yield place


class TestCalls(ChannelContract):
    """Its calls."""


class TestDeliveries(DeliveryContract):
    """The messages of jobs."""


class TestConversation(ConversationContract):
    """What people write."""
