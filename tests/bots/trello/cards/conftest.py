"""The harness of the Trello bot, for tests of cards."""

from __future__ import annotations

from tests.bots.trello.inbound.conftest import bench, settings

__all__ = ["bench", "settings"]
