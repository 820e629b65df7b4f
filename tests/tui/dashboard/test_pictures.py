"""Screens with fixed values, compared with `pictures/`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import pytest
from rich.color import Color

from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog
from draftsman_tui.dashboard.frame.messages import ConnectionLost, RowsLoaded
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.approval_dialog import ApprovalDialog
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext
from draftsman_tui.dashboard.requests.dialog import NewJobDialog
from draftsman_tui.dashboard.requests.form import FormErrors
from draftsman_tui.dashboard.tables.filter import parse
from draftsman_tui.dashboard.tables.resource import Rows
from draftsman_tui.dashboard.views import OWN_TABLES, VIEWS
from draftsman_tui.dashboard.widgets import screen_lines
from tests.support.svg import lines_of
from tests.tui.dashboard.fixtures_data import GATE, PATCH, job_snapshot, question
from tests.tui.dashboard.pictures import EXPECTED, assert_matches_picture, show_table, shown

PARTS: Final = ("timeline", "questions", "diff", "log")
"""Tabs of the job screen that differ in layout."""
DEFAULT: Final = (Color.default(), Color.default())
NAMES: Final = (
    *sorted(OWN_TABLES),
    *("answer", "decide", "confirm", "help", "palette", "filter-error", "completion"),
    *(f"job-{part}" for part in PARTS),
    *("new-job", "filter-empty", "views", "columns", "lost", "read-only"),
)


pytestmark = pytest.mark.usefixtures("frozen")


async def test_tables() -> None:
    async with shown() as seen:
        for view in OWN_TABLES:
            await show_table(view, seen)
            await assert_matches_picture(view, seen)


async def test_an_answer() -> None:
    async with shown("inbox") as seen:
        await seen.app.push_screen(
            AnswerDialog(question(), QuestionContext(responders="anna, ben"))
        )
        await seen.see("2  safe fixes", "free text")
        await assert_matches_picture("answer", seen)


async def test_a_decision() -> None:
    async with shown("inbox") as seen:
        context = QuestionContext(responders="anna")
        await seen.app.push_screen(ApprovalDialog(GATE, context, diff=PATCH))
        await seen.see("- import os")
        await assert_matches_picture("decide", seen)


async def test_a_confirmation() -> None:
    async with shown() as seen:
        await seen.app.push_screen(ConfirmDialog("Cancel D-143?", "Work so far is kept."))
        await seen.see("y: yes")
        await assert_matches_picture("confirm", seen)


async def test_help() -> None:
    async with shown() as seen:
        await seen.press("question_mark")
        await seen.see("Commands")
        await assert_matches_picture("help", seen)


async def test_the_palette() -> None:
    async with shown() as seen:
        await seen.press("ctrl+p")
        await seen.dialog("CommandPalette")
        await seen.type("inbox")
        await seen.until(lambda: "Open questions" in seen.text and "All jobs" not in seen.text)
        await assert_matches_picture("palette", seen)


def test_picture_has_no_external_resources() -> None:
    for path in EXPECTED.glob("*.svg"):
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "@font-face" not in text, path
        assert "cdnjs" not in text, path
        assert "url(" not in text, path


async def test_a_job() -> None:
    async with shown() as seen:
        for part in PARTS:
            seen.app.main.open_job(142, part)
            await seen.dialog("JobScreen")
            seen.app.screen.post_message(JobLoaded(job_snapshot()))
            await seen.see("by Anna")
            await assert_matches_picture(f"job-{part}", seen)
            await seen.press("escape")
            await seen.dialog("MainScreen")


async def test_the_form_of_a_new_job() -> None:
    async with shown() as seen:
        form = NewJobDialog("New job", {"text": "Tidy the stock", "repo": "acme/inventory"}, {})
        await seen.app.push_screen(form)
        await seen.see("Tidy the stock")
        form.failed(FormErrors({"repo": "no repository of that name"}))
        await seen.see("no repository of that name")
        await assert_matches_picture("new-job", seen)


async def test_a_line_with_an_error() -> None:
    async with shown() as seen:
        await seen.press("slash")
        await seen.type("age>soon")
        await seen.press("enter")
        await seen.see("invalid time")
        await assert_matches_picture("filter-error", seen)


async def test_a_line_that_is_completed() -> None:
    async with shown() as seen:
        await seen.press("colon")
        await seen.type("jobs status:w")
        await seen.see("status:waiting_for_input")
        await assert_matches_picture("completion", seen)


async def test_a_filter_without_matches() -> None:
    async with shown() as seen:
        seen.app.main.apply_filter(parse("by:me age<1h"))
        seen.app.main.post_message(RowsLoaded(VIEWS["jobs"], seen.app.main.loader.query, Rows([])))
        await seen.see("Esc clears the filter")
        await assert_matches_picture("filter-empty", seen)


async def test_saved_views() -> None:
    async with shown() as seen:
        await seen.press("v")
        await seen.dialog("ChoiceDialog")
        await assert_matches_picture("views", seen)


async def test_columns() -> None:
    async with shown() as seen:
        await seen.press("C")
        await seen.dialog("ColumnsDialog")
        await assert_matches_picture("columns", seen)


async def test_a_lost_database(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown() as seen:
        monkeypatch.setattr(screen_lines, "time", SimpleNamespace(monotonic=lambda: 100.0))
        seen.app.main.post_message(ConnectionLost("db.internal:5432 cannot be reached", 104.0))
        await seen.see("Retrying in 4 s")
        await assert_matches_picture("lost", seen)


async def test_read_only() -> None:
    async with shown("inbox", read_only=True) as seen:
        await seen.see("read-only")
        await assert_matches_picture("read-only", seen)


async def test_theme_without_colors_shows_every_role() -> None:
    async with shown() as seen:
        words = seen.text
        seen.app.theme = "none"
        await seen.pilot.pause()
        assert seen.text == words
        styles = {style for line in lines_of(seen.app) for _, style, _ in line if style}
        assert {(style.color, style.bgcolor) for style in styles} <= {(None, None), DEFAULT}
        assert any(style.reverse for style in styles)


def test_every_table_has_pictures_and_no_picture_is_unused() -> None:
    assert {path.name for path in EXPECTED.iterdir()} == {
        f"{name}.{kind}" for name in NAMES for kind in ("svg", "cells")
    }
