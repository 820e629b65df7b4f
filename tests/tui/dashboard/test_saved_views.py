"""Saved views, columns, mouse and input line, over fixed rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events

from draftsman_tui.dashboard.frame.messages import RowsLoaded
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded
from draftsman_tui.dashboard.preferences import preferences_path
from draftsman_tui.dashboard.questions.view import InboxResource
from draftsman_tui.dashboard.tables.filter import parse
from draftsman_tui.dashboard.tables.resource import Rows
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View
from draftsman_tui.dashboard.tables.screen import MainScreen, TableState
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.command_line import CommandLine
from tests.tui.dashboard.fixtures_data import ANNA, NOW, ROWS, job_snapshot
from tests.tui.dashboard.pictures import RUNTIME, shown
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

pytestmark = pytest.mark.usefixtures("frozen")


def _line(seen: DashboardPilot) -> str:
    return seen.app.screen.query_one(CommandLine).line.value


def _find(seen: DashboardPilot, view: str = "jobs") -> None:
    """Post rows for the current query."""
    loaded = RowsLoaded(VIEWS[view], seen.app.main.loader.query, Rows(ROWS[view]))
    seen.app.main.post_message(loaded)


async def test_view_is_saved_opened_and_deleted() -> None:
    async with shown() as seen:
        main = seen.app.main
        await seen.command("filter status:failed")
        await seen.command("sort title")
        await seen.command("columns job,title")
        await seen.command("save Bad-ones")
        await seen.wait_for_toast(
            "Saved view bad-ones: jobs status:failed by title ↑ with job, title"
        )
        await seen.see("jobs bad-ones · loading …", "/status:failed · by title ↑")
        await seen.command("inbox")
        await seen.see("inbox · ")
        await seen.command("bad")
        await seen.see("jobs bad-ones", "/status:failed")
        saved = View("jobs", "status:failed", "TITLE", False, ("JOB", "TITLE"))
        assert main.state.as_view("jobs") == saved
        await seen.command("unsave bad-ones")
        await seen.see("Delete view bad-ones?")
        await seen.press("enter")
        assert "bad-ones" in main.session.views()
        await seen.command("unsave bad-ones")
        await seen.see("Delete view bad-ones?")
        await seen.press("y")
        await seen.wait_for_toast("Deleted view bad-ones")
        assert "bad-ones" not in main.session.views()


async def test_builtin_view_is_chosen_from_the_list() -> None:
    async with shown() as seen:
        await seen.press("v")
        await seen.see("4  failed-today  jobs  status:failed,dead_letter age<1d")
        await seen.press("down", "down", "down", "enter")
        await seen.see("jobs failed-today")
        await seen.command("unsave mine")
        await seen.wait_for_toast("no saved view 'mine'; built-in views cannot be deleted")
        await seen.command("save jobs")
        await seen.wait_for_toast(":jobs is a command")


async def test_by_me_matches_the_current_user() -> None:
    async with shown() as seen:
        main = seen.app.main
        await seen.command("mine")
        await seen.see("jobs mine · loading …")
        assert (str(main.state.filter), main.loader.query.filter.by) == ("by:me", "anna")
        _find(seen)
        await seen.see("jobs mine · 13")


async def test_for_me_matches_questions_that_wait_for_the_user() -> None:
    mine, other = ROWS["inbox"][:2]
    fields = InboxResource().filter_fields
    query = parse("for:me").resolve_me("anna")
    assert query.matches(fields(replace(mine, for_viewer=True)), NOW)
    assert not query.matches(fields(replace(other, for_viewer=False)), NOW)


async def test_hidden_columns_are_reached_by_scrolling() -> None:
    async with shown() as seen:
        assert "AGENT" not in seen.lines[3]
        assert seen.lines[3].endswith("»")
        await seen.press("right")
        await seen.see("« JOB", "TYPE", "QUEUE", "REPO")
        await seen.press("right", "right", "right", "right", "right", "right", "right")
        assert not seen.lines[3].endswith("»")
        assert "NEXT" in seen.lines[3]
        await seen.press("left", "left", "left", "left", "left", "left", "left", "left")
        await seen.see("  JOB ", "STATUS")


async def test_columns_are_chosen_and_reordered() -> None:
    async with shown() as seen:
        await seen.press("C")
        await seen.dialog("ColumnsDialog")
        await seen.press("space", "down", "space", "down", "J", "enter")
        await seen.dialog("MainScreen")
        assert seen.app.main.state.columns == ("JOB", "AGE", "TITLE", "NEXT")
        await seen.press("C")
        await seen.dialog("ColumnsDialog")
        await seen.press("f")
        await seen.dialog("MainScreen")
        assert not seen.app.main.state.columns
        await seen.command("columns nonsense")
        await seen.wait_for_toast("unknown column 'nonsense'; choose from: all, fitting, job")


async def test_mouse_sorts_marks_and_opens() -> None:
    async with shown() as seen:
        table = seen.app.main.table
        await seen.pilot.click(table, offset=(25, 0))
        await seen.see("by title ↑")
        await seen.pilot.click(table, offset=(25, 0))
        await seen.see("by title ↓")
        await seen.command("sort job")
        await seen.press("S")
        await seen.pilot.click(table, offset=(5, 3))
        assert seen.cursor_key == seen.keys[2]
        await seen.pilot.click(table, offset=(5, 5), control=True)
        assert table.marked == {seen.keys[4]}
        await seen.pilot.mouse_down(table, offset=(5, 7))
        await seen.pilot.hover(table, offset=(5, 9))
        await seen.pilot.mouse_up(table, offset=(5, 9))
        table.action_move(-100)
        assert seen.cursor_key == seen.keys[0]


async def test_mouse_wheel_moves_the_cursor() -> None:
    async with shown() as seen:
        table = seen.app.main.table
        where = dict.fromkeys(("x", "y", "delta_x", "delta_y", "button"), 0)
        for kind, here in ((events.MouseScrollDown, 4), (events.MouseScrollUp, 1)):
            table.post_message(
                kind(table, **where, shift=False, meta=False, ctrl=False)  # type: ignore[arg-type]
            )
            await seen.pilot.pause()
            assert table.cursor == here


async def test_command_line_has_completion_and_history() -> None:
    async with shown() as seen:
        await seen.press("colon")
        await seen.type("th")
        await seen.press("tab", "space")
        await seen.see("dark  light  contrast  none")
        await seen.press("tab", "tab")
        assert _line(seen) == "theme light"
        await seen.press("shift+tab")
        assert _line(seen) == "theme dark"
        await seen.press("enter")
        await seen.press("colon", "up")
        assert _line(seen) == "theme dark"
        await seen.press("down")
        assert _line(seen) == ""
        await seen.press("escape", "slash")
        await seen.type("repo:")
        await seen.see("repo:acme/inventory  repo:acme/pay")
        await seen.press("up")
        assert _line(seen) == "repo:"


async def test_invalid_filter_is_reported_above_the_line_and_kept() -> None:
    async with shown() as seen:
        await seen.press("slash")
        await seen.type("status:nonsense")
        await seen.press("enter")
        await seen.see("unknown status 'nonsense'; available: waiting", "/status:nonsense")
        assert not seen.app.main.state.filter
        await seen.press("escape")
        assert "nonsense" not in seen.text


async def test_theme_is_saved() -> None:
    async with shown() as seen:
        await seen.press("t")
        assert (seen.app.theme, seen.app.session.preferences.theme) == ("light", "light")


async def test_invalid_preferences_are_reported_once_and_builtin_views_work() -> None:
    preferences_path().parent.mkdir(parents=True)
    preferences_path().write_text("{")
    async with shown() as seen:
        await seen.wait_for_toast("is not a valid preferences file")
        await seen.command("mine")
        await seen.see("jobs mine")
        await seen.command("save x")
        await seen.wait_for_toast("is not a valid preferences file")
        await seen._until(lambda: sum("not a valid" in text for text in seen.toasts) == 1, "once")
        assert preferences_path().read_text() == "{"


async def test_title_shows_the_sort_order() -> None:
    async with shown() as seen:
        query = seen.app.main.loader.query
        seen.app.main.post_message(RowsLoaded(VIEWS["jobs"], query, Rows(ROWS["jobs"], 131)))
        await seen.command("sort title")
        await seen.see("jobs · 13+ · by title ↑ among the loaded 13")


async def test_table_shows_that_it_is_loading() -> None:
    async with shown() as seen:
        await seen.press("2")
        await seen.see("inbox · loading …", "  loading …")
        assert "Nothing waits" not in seen.text
        assert isinstance(seen.app.screen, MainScreen)


async def test_invalid_command_stays_for_editing() -> None:
    async with shown() as seen:
        for typed, error in (
            ("save my failures", "invalid view name 'my failures'"),
            ("theme pink", "unknown theme 'pink'"),
            ("sort nonsense", "cannot sort by column 'nonsense'"),
            ("D-0", "'D-0' is not a job"),
        ):
            await seen.command(typed)
            await seen.see(error)
            assert not seen.app._notifications
            await seen.press("q")
            assert _line(seen) == f"{typed}q"
            await seen.press("escape")
            await seen.see("? help")


async def test_command_that_opens_a_dialog_closes_its_line() -> None:
    async with shown() as seen:
        await seen.command("views")
        await seen.see("Open which view?")
        await seen.press("escape")
        await seen.see("? help")
        assert not seen.app.screen.query_one(CommandLine).has_class("open")


async def test_long_error_of_the_line_is_shown_in_full() -> None:
    async with shown() as seen:
        await seen.press("slash")
        await seen.paste("status:bogus")
        await seen.press("enter")
        await seen.see("unknown status 'bogus'", "dead_letter", "canceled")


async def test_title_shows_the_number_of_marked_rows() -> None:
    async with shown() as seen:
        await seen.see("jobs · 13")
        await seen.press("space", "space")
        await seen.see("jobs · 13 · 2 marked")
        seen.app.main.keep_marked([seen.app.main.jobs()[0]])
        await seen.see("jobs · 13 · 1 marked")
        await seen.press("escape")
        await seen.until(lambda: "marked" not in seen.lines[2])


async def test_search_without_matches_is_reported_and_cleared() -> None:
    async with shown() as seen:
        seen.app.main.open_job(142, "log")
        await seen.dialog("JobScreen")
        seen.app.screen.post_message(JobLoaded(job_snapshot()))
        await seen.see("ruff check")
        await seen.command("find elephants")
        await seen.see("/elephants · no match", "ruff check")
        await seen.command("job-questions")
        await seen.command("find elephants")
        await seen.see("No matches for elephants. Esc clears the search")
        await seen.press("escape")
        await seen.see("Which fixes should be applied?")


async def test_equal_notifications_are_shown_once() -> None:
    async with open_dashboard(RUNTIME, ANNA, toasts=True) as seen:
        for text in ("refused, as before", "something else", "refused, as before"):
            seen.app.main.show_error(text)
        await seen.see("refused, as before", "something else")
        assert sorted(seen.toasts) == ["refused, as before", "something else"]
        assert seen.text.count("refused, as before") == 1


async def test_every_view_is_left_by_escape_and_by_the_table_of_jobs() -> None:
    async with shown() as seen:
        main = seen.app.main
        plain = TableState()

        def is_left() -> bool:
            return main.view_name == "jobs" and replace(main.state, rows=None) == plain

        for name in (*VIEWS, *BUILTIN_VIEWS):
            for leave in ("escape", "1", "jobs"):
                await seen.command(name)
                await seen.until(lambda name=name: name in (main.view_name, main.state.name))  # type: ignore[misc]
                if leave == "escape":
                    await seen.press("escape", "escape")  # from a view to its table, then to jobs
                elif leave == "1":
                    await seen.press("1")
                else:
                    await seen.command("jobs")
                await seen.until(is_left)


async def test_a_table_left_for_another_keeps_its_filter_but_its_own_key_clears_it() -> None:
    async with shown() as seen:
        main = seen.app.main
        await seen.command("filter status:failed")
        await seen.until(lambda: bool(main.state.filter))
        await seen.press("2")
        await seen.until(lambda: main.view_name == "inbox")
        await seen.press("1")
        await seen.until(lambda: main.view_name == "jobs" and str(main.state.filter) != "")
        await seen.press("1")
        await seen.until(lambda: not main.state.filter)
