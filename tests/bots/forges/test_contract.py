"""The contracts of channels, for the comments of forges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.delivery_contract import DeliveryContract
from tests.bots.forges.forge_place import KINDS, ForgePlace, forge_place


class TestCalls(ChannelContract):
    """The calls, of each forge."""

    @pytest.fixture(params=KINDS)
    async def place(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgePlace]:
        async with forge_place(request.param, tmp_path, monkeypatch) as place:
            yield place


class TestDeliveries(DeliveryContract):
    """The messages of jobs, on GitHub."""

    @pytest.fixture
    async def place(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgePlace]:
        async with forge_place("github", tmp_path, monkeypatch) as place:
            yield place
