"""Fixtures that isolate a dashboard from the terminal and the clock."""

from __future__ import annotations

import math
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from textual.screen import Screen

from draftsman_tui.common import times
from draftsman_tui.dashboard.polling.messages import StatsUpdated
from draftsman_tui.dashboard.polling.refresher import Refresher
from draftsman_tui.dashboard.screens import base
from tests.tui.dashboard.fixtures_data import NOW, STATS


class FrozenDatetime(datetime):
    """A stopped clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_repainting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test reads it, not after each change.

    Drawing for the headless driver, which drops it, took a third of the time of these tests.
    """

    refresh = Screen._compositor_refresh

    def drop(screen: Screen[object]) -> None:
        if screen is not screen.app.screen:
            refresh(screen)  # the screen behind a dialog makes the dialog dirty
            return
        screen._compositor._dirty_regions.clear()
        screen._dirty_widgets.clear()
        screen.app._update_mouse_over(screen)

    monkeypatch.setattr(Screen, "_compositor_refresh", drop)


@pytest.fixture(autouse=True)
def _empty_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test an empty state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the refresher and the clock."""

    async def nothing(refresher: Refresher) -> None:
        """Poll never."""

    monkeypatch.setattr(Refresher, "run", nothing)
    monkeypatch.setattr(Refresher, "now", NOW)
    monkeypatch.setattr(Refresher, "last_stats", StatsUpdated(STATS))
    monkeypatch.setattr(base, "STALE", math.inf)
    monkeypatch.setattr(times, "datetime", FrozenDatetime)
