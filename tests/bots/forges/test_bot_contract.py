"""The contract of all bots, for the comments of a forge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bots.bot_contract import BotContract
from tests.bots.forges.forge_side import ForgeSide, forge_side


class TestForge(BotContract):
    """The contract, over GitHub; the channel's own contract is over each forge."""

    @pytest.fixture
    async def side(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgeSide]:
        async with forge_side("github", tmp_path, monkeypatch) as side:
            yield side
