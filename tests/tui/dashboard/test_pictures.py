"""How it looks, of values that never change; `pictures/` has each as it should be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import pytest
from rich.color import Color

from draftsman_tui.dashboard.filter import parse
from draftsman_tui.dashboard.form import Errors
from draftsman_tui.dashboard.job.seen import JobFound
from draftsman_tui.dashboard.messages import Found, Lost
from draftsman_tui.dashboard.resource import Rows
from draftsman_tui.dashboard.screens.answer import Answer
from draftsman_tui.dashboard.screens.confirm import Confirm
from draftsman_tui.dashboard.screens.decide import Decide
from draftsman_tui.dashboard.screens.new_job import NewJob
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets import banner
from tests.support.drawing import lines_of
from tests.tui.dashboard.pictures import KEPT, is_as_pictured, shown
from tests.tui.dashboard.still import GATE, NOW, PATCH, question, seen_job

PARTS: Final = ("timeline", "questions", "diff", "log")
"""Those of the screen of a job that look different from each other."""
DEFAULT: Final = (Color.default(), Color.default())
NAMES: Final = (
    *VIEWS,
    *("answer", "decide", "confirm", "help", "palette", "filter-error", "completion"),
    *(f"job-{part}" for part in PARTS),
    *("new-job", "filter-empty", "views", "columns", "lost", "read-only"),
)


pytestmark = pytest.mark.usefixtures("stands")


@pytest.mark.parametrize("view", VIEWS)
async def test_a_table(view: str) -> None:
    async with shown(view) as seen:
        await is_as_pictured(view, seen)


async def test_an_answer() -> None:
    async with shown("inbox") as seen:
        await seen.app.push_screen(Answer(question(), "anna, ben", clock=lambda: NOW))
        await seen.see("2  safe fixes", "own words")
        await is_as_pictured("answer", seen)


async def test_a_decision() -> None:
    async with shown("inbox") as seen:
        await seen.app.push_screen(Decide(GATE, "anna", clock=lambda: NOW, diff=PATCH))
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


@pytest.mark.parametrize("part", PARTS)
async def test_a_job(part: str) -> None:
    async with shown() as seen:
        seen.app.main.open_job(142, part)
        await seen.dialog("JobScreen")
        seen.app.screen.post_message(JobFound(seen_job()))
        await seen.see("by Anna")
        await is_as_pictured(f"job-{part}", seen)


async def test_the_form_of_a_new_job() -> None:
    async with shown() as seen:
        form = NewJob("A new job", {"text": "Tidy the stock", "repo": "acme/inventory"}, {})
        await seen.app.push_screen(form)
        await seen.see("Tidy the stock")
        form.failed(Errors({"repo": "no repository of that name"}))
        await seen.see("no repository of that name")
        await is_as_pictured("new-job", seen)


async def test_a_line_with_an_error() -> None:
    async with shown() as seen:
        await seen.press("slash")
        await seen.type("age>soon")
        await seen.press("enter")
        await seen.see("is not a duration")
        await is_as_pictured("filter-error", seen)


async def test_a_line_that_is_completed() -> None:
    async with shown() as seen:
        await seen.press("colon")
        await seen.type("jobs status:w")
        await seen.see("status:waiting_for_input")
        await is_as_pictured("completion", seen)


async def test_a_filter_that_wants_nothing() -> None:
    async with shown() as seen:
        seen.app.main.narrow(parse("by:me age<1h"))
        seen.app.main.post_message(Found(VIEWS["jobs"], seen.app.main.look.query, Rows([])))
        await seen.see("esc takes it off")
        await is_as_pictured("filter-empty", seen)


async def test_saved_views() -> None:
    async with shown() as seen:
        await seen.press("v")
        await seen.dialog("Choose")
        await is_as_pictured("views", seen)


async def test_columns() -> None:
    async with shown() as seen:
        await seen.press("C")
        await seen.dialog("Columns")
        await is_as_pictured("columns", seen)


async def test_a_lost_database(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown() as seen:
        monkeypatch.setattr(banner, "time", SimpleNamespace(monotonic=lambda: 100.0))
        seen.app.main.post_message(Lost("db.internal:5432 cannot be reached", 104.0))
        await seen.see("Retrying in 4 s")
        await is_as_pictured("lost", seen)


async def test_read_only() -> None:
    async with shown("inbox", read_only=True) as seen:
        await seen.see("read-only")
        await is_as_pictured("read-only", seen)


async def test_without_colours_nothing_is_lost() -> None:
    async with shown() as seen:
        words = seen.text
        seen.app.theme = "none"
        await seen.pilot.pause()
        assert seen.text == words
        styles = {style for line in lines_of(seen.app) for _, style, _ in line if style}
        assert {(style.color, style.bgcolor) for style in styles} <= {(None, None), DEFAULT}
        assert any(style.reverse for style in styles)


def test_every_table_has_its_pictures_and_no_other_is_kept() -> None:
    assert {path.name for path in KEPT.iterdir()} == {
        f"{name}.{kind}" for name in NAMES for kind in ("svg", "cells")
    }
