"""Fixtures that isolate a dashboard from the terminal and the clock."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import pytest
from textual._context import active_app
from textual.app import App
from textual.screen import Screen

from draftsman.formats import times
from draftsman_tui.dashboard.frame import base_screen as base
from draftsman_tui.dashboard.frame.connection import DatabaseClock
from draftsman_tui.dashboard.frame.messages import StatsUpdated
from draftsman_tui.dashboard.frame.refresher import Refresher
from tests.tui.dashboard import shared_styles
from tests.tui.dashboard.fixtures_data import NOW, STATS

IDLE_TURNS: Final = 2
"""Turns of the event loop in a row with nothing to run, after which it is idle."""
MAX_UPDATES: Final = 50
"""Updates of the screen that a key may lead to."""


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
            screen._repaint_required = False  # else it would never be idle
            return
        screen._compositor._dirty_regions.clear()
        screen._dirty_widgets.clear()
        screen.app._update_mouse_over(screen)

    monkeypatch.setattr(Screen, "_compositor_refresh", drop)


class _NoCache:
    """A cache of nothing."""

    def get(self, _key: object) -> None:
        return None

    def __setitem__(self, _key: object, _value: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_caches_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create no caches for each line: a screen is drawn once, when a test reads it."""
    nothing = _NoCache()
    monkeypatch.setattr("textual.strip.FIFOCache", lambda _size: nothing)


@pytest.fixture(autouse=True)
def _share_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_styles.share(monkeypatch)


@pytest.fixture(autouse=True)
def _wait_until_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pilot wait until there is nothing to run and nothing to lay out.

    Textual instead sleeps 20 ms, twice for each key, until the process has used no CPU meanwhile.
    """
    for module in ("textual.pilot", "textual.app"):
        monkeypatch.setattr(f"{module}.wait_for_idle", _app_is_idle)


async def _app_is_idle(_least: float = 0, _most: float = 1) -> None:
    ready: Any = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    app = active_app.get()
    for _ in range(MAX_UPDATES):
        idle = 0
        while idle < IDLE_TURNS:
            await asyncio.sleep(0)
            idle = 0 if ready else idle + 1
        if not app.is_running:
            return
        if app._resize_timer is not None:
            app._check_resize()
        elif outdated := [screen for screen in _visible_screens(app) if _is_outdated(screen)]:
            for screen in outdated:
                screen._on_timer_update()
        else:
            return


def _visible_screens(app: App[object]) -> list[Screen[object]]:
    """Return the active screen and those that are visible below it."""
    return [app.screen, *app._background_screens]


def _is_outdated(screen: Screen[object]) -> bool:
    """Return whether the timer of a screen has something to do, 60 times in a second."""
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


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
    monkeypatch.setattr(DatabaseClock, "now", NOW)
    monkeypatch.setattr(Refresher, "last_stats", StatsUpdated(STATS))
    monkeypatch.setattr(base, "STALE", math.inf)
    monkeypatch.setattr(times, "datetime", FrozenDatetime)
