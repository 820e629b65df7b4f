"""The contract of every channel, for the comments of each forge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from draftsman_bots.forges.deliveries.render import marker_of
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.server import Refused
from tests.bots.channel_alias import ChannelAlias
from tests.bots.forges.forge_side import KINDS, TARGET, ForgeSide, forge_side
from tests.core.deliveries.channels.channel_contract import ChannelContract


class ForgeChannelHarness:
    """An issue; the contract's target `ops` is that issue."""

    finds = True
    cuts = True

    def __init__(self, side: ForgeSide) -> None:
        self._side = side
        self.channel = ChannelAlias(side.channel, TARGET, "987654321")

    async def seen(self) -> list[tuple[str, str]]:
        """Return the marker and text of each comment."""
        notes = self._side.fake.world.comments()
        return [(marker_of(note.body) or "", note.body) for note in notes]

    async def drop_next_response(self) -> None:
        """Hang up when the next comment is there."""
        self._side.drop_next_response()

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next comment."""
        fake = self._side.fake
        if retry_after is None:
            fake.world.faults.add("comment", Fault("error", status=status, text="no"))
            return
        refused = Refused(status, "slow down", {"Retry-After": retry_after})
        fake.limited = lambda name: refused  # type: ignore[method-assign]
        fake.world.faults.add("comment", Fault("primary"))

    async def stop_listening(self) -> None:
        """Close the port."""
        await self._side.fake.stop()


class TestForge(ChannelContract):
    """The contract."""

    @pytest.fixture(params=KINDS)
    async def harness(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgeChannelHarness]:
        async with forge_side(request.param, tmp_path, monkeypatch) as side:
            yield ForgeChannelHarness(side)
