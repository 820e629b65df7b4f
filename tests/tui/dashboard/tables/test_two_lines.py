"""Rows of two lines, where the columns do not fit into one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman_tui.dashboard.frame.messages import RowsLoaded
from draftsman_tui.dashboard.tables.resource import Rows
from draftsman_tui.dashboard.views import VIEWS
from tests.tui.dashboard.fixtures_data import question
from tests.tui.dashboard.pictures import shown
from tests.tui.dashboard.pilot import DashboardPilot

COUNT = 20
pytestmark = pytest.mark.usefixtures("frozen")


async def _fill(seen: DashboardPilot) -> None:
    rows = [
        replace(question(), job=nth, title=f"Title {nth}", repo=f"acme/repo{nth}", requester=by)
        for nth, by in zip(range(101, 101 + COUNT), ("anna", "ben") * COUNT, strict=False)
    ]
    seen.app.main.post_message(RowsLoaded(VIEWS["inbox"], seen.app.main.loader.query, Rows(rows)))
    await seen.see(f"inbox · {COUNT}")


async def test_a_narrow_inbox_tells_its_rows_apart() -> None:
    async with shown("inbox") as seen:
        await _fill(seen)
        first, second, third = seen.lines[4:7]
        assert first.startswith("▸ D-101/1")
        assert "question Which fixes should be applied?" in first
        assert "3 min" in first
        assert "in 5 h" in first
        # each value of the second line is below the column that it belongs to
        at = [first.index(word) for word in ("D-101", "question", "Which")]
        assert [second.index(word) for word in ("repo101", "anna", "Title 101")] == at
        assert third.startswith("  D-102/1")
        await seen.pilot.resize_terminal(240, 24)
        await seen.until(lambda: "TITLE" in seen.lines[3])
        assert seen.lines[5].startswith("  D-102/1")


async def test_the_cursor_moves_and_scrolls_by_rows_of_two_lines() -> None:
    async with shown("inbox") as seen:
        await _fill(seen)
        table = seen.app.main.table
        for nth in range(1, COUNT):
            await seen.press("down")
            assert seen.cursor_key == f"D-{101 + nth}/1"
            at = next(y for y, line in enumerate(seen.lines) if line.startswith("▸"))
            assert f"repo{101 + nth}" in seen.lines[at + 1]
            assert table.region.y + 1 + table.span(table.cursor)[0] - table.top == at
            if nth < COUNT - 1:
                assert seen.lines[4][2:].startswith("D-")  # no row begins above the table
        await seen.press("home")
        await seen.press("pagedown")
        assert seen.cursor_key == "D-110/1"
        await seen.press("home")
        await seen.pilot.click(table, offset=(5, 4))
        assert seen.cursor_key == "D-102/1"
        await seen.press("right")  # scrolled columns are on one line
        assert "D-102/1" in seen.lines[5]
        await seen.press("left")
        assert "repo101" in seen.lines[5]
        await seen.command("group-by person")
        await seen.press("home")
        await seen.see("▾ anna · 10")
        lines = [line[2:9] for line in seen.lines[4:8]]
        assert lines == ["▾ anna ", "D-101/1", "repo101", "D-103/1"]
