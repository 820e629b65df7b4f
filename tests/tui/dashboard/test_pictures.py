"""How it looks, of values that never change; `pictures/` has each as it should be."""

from __future__ import annotations

from datetime import datetime, tzinfo

import pytest

from draftsman_tui.cli import times
from draftsman_tui.dashboard.live import Live
from draftsman_tui.dashboard.screens.answer import Answer
from draftsman_tui.dashboard.screens.confirm import Confirm
from draftsman_tui.dashboard.screens.decide import Decide
from draftsman_tui.dashboard.views import VIEWS
from tests.tui.dashboard.pictures import KEPT, is_as_pictured, shown
from tests.tui.dashboard.still import GATE, NOW, PATCH, question


class Still(datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be looked at, and the clock stand."""

    async def nothing(live: Live) -> None:
        """Never look."""

    monkeypatch.setattr(Live, "run", nothing)
    monkeypatch.setattr(Live, "now", NOW)
    monkeypatch.setattr(times, "datetime", Still)


@pytest.mark.parametrize("view", VIEWS)
async def test_a_table(view: str) -> None:
    async with shown(view) as seen:
        await is_as_pictured(view, seen)


async def test_an_answer() -> None:
    async with shown("inbox") as seen:
        await seen.app.push_screen(Answer(question(), "anna, ben"))
        await seen.see("2  safe fixes", "own words")
        await is_as_pictured("answer", seen)


async def test_a_decision() -> None:
    async with shown("inbox") as seen:
        await seen.app.push_screen(Decide(GATE, "anna", PATCH))
        await seen.see("-import os")
        await is_as_pictured("decide", seen)


async def test_a_confirmation() -> None:
    async with shown() as seen:
        await seen.app.push_screen(Confirm("Cancel D-143?", "What they did is kept."))
        await seen.see("y: yes")
        await is_as_pictured("confirm", seen)


async def test_help() -> None:
    async with shown() as seen:
        await seen.press("question_mark")
        await seen.see("What can be done here")
        await is_as_pictured("help", seen)


async def test_the_palette() -> None:
    async with shown() as seen:
        await seen.press("ctrl+p")
        await seen.dialog("CommandPalette")
        await seen.type("inbox")
        await seen.see("Open questions")
        await is_as_pictured("palette", seen)


def test_a_picture_fetches_nothing() -> None:
    for path in KEPT.glob("*.svg"):
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "@font-face" not in text, path
        assert "cdnjs" not in text, path
        assert "url(" not in text, path
