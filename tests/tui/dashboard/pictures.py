"""Compares what a dashboard shows with its pictures, SVG that a browser opens.

Each screen is shown in three sizes and two themes by one application, of values that never change,
without a database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from textual.widgets import Input, TextArea

from draftsman.domain.people.policy import Policy
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.filter import NOTHING
from draftsman_tui.dashboard.polling.messages import RowsLoaded, StatsUpdated
from draftsman_tui.dashboard.resource import Query, Rows
from draftsman_tui.dashboard.views import VIEWS
from tests.support.svg import render_svg
from tests.tui.dashboard.fixtures_data import ANNA, NOW, ROWS, VITALS
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

EXPECTED: Final = Path(__file__).parent / "pictures"
ACTUAL: Final = Path(__file__).parents[3] / ".pytest_cache" / "pictures"
"""Where pictures go that are not as they were; to keep them is to copy them."""
SIZES: Final = ((80, 24), (120, 30), (200, 50))
THEMES: Final = ("dark", "light")
RUNTIME: Final = cast(Runtime, SimpleNamespace(policy=Policy(), embedded=True))
"""Of pictures: nothing is looked at, so nothing is there to be asked."""


@asynccontextmanager
async def shown(view: str = "jobs", *, read_only: bool = False) -> AsyncIterator[DashboardPilot]:
    """Open a dashboard with a table of values that never change."""
    how: dict[str, Any] = {"view": view, "size": SIZES[0], "read_only": read_only}
    async with open_dashboard(RUNTIME, ANNA, **how) as seen:
        found = RowsLoaded(VIEWS[view], Query(NOTHING, NOW), Rows(ROWS[view]))
        seen.app.main.post_message(found)
        seen.app.main.post_message(StatsUpdated(VITALS))
        await seen.see("your clock is 4 s ahead")
        yield seen


async def assert_matches_picture(name: str, seen: DashboardPilot) -> None:
    """Fail where a screen is not as its pictures, and leave new ones to be looked at."""
    for one in (*seen.app.screen.query(Input), *seen.app.screen.query(TextArea)):
        one.cursor_blink = False
        one._pause_blink(visible=True)
    wrong = []
    for theme in THEMES:
        seen.app.theme = theme
        for width, height in SIZES:
            await seen.pilot.resize_terminal(width, height)
            await seen.pilot.pause()
            if not _is_kept(f"{name}-{width}x{height}-{theme}", seen):
                wrong.append(f"{width}x{height} {theme}")
    if wrong:
        raise AssertionError(
            f"{name} is not as pictured ({', '.join(wrong)}); look at {ACTUAL}, and if it is as it"
            f" should be: cp {ACTUAL}/*.svg {EXPECTED}/"
        )


def _is_kept(name: str, seen: DashboardPilot) -> bool:
    svg, kept, taken = render_svg(seen.app), EXPECTED / f"{name}.svg", ACTUAL / f"{name}.svg"
    if kept.exists() and kept.read_text("utf-8") == svg:
        taken.unlink(missing_ok=True)
        return True
    ACTUAL.mkdir(parents=True, exist_ok=True)
    taken.write_text(svg, "utf-8")
    return False
