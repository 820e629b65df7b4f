"""Ctrl-C in a dialog: quits after confirmation, or copies the selection."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman_tui.dashboard.app import Dashboard
from draftsman_tui.dashboard.launch_options import LaunchOptions
from draftsman_tui.dashboard.requests.dialog import NewJobDialog
from draftsman_tui.dashboard.widgets.inputs import MultilineInput
from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses
from tests.support.slow import slow_except
from tests.tui.dashboard.fixtures_data import ANNA
from tests.tui.dashboard.pictures import RUNTIME, shown
from tests.tui.dashboard.pilot import DashboardPilot, connection

pytestmark = pytest.mark.usefixtures("frozen")


@pytest.mark.parametrize("tabs", slow_except([0], [0, 1, 3]), ids=["lines", "line", "choice"])
async def test_ctrl_c_in_a_form_asks_to_quit_and_keeps_the_input(tabs: int, tmp_path: Path) -> None:
    started = SupervisedProcesses(1, tmp_path / "log")
    app = Dashboard(connection(RUNTIME, ANNA), LaunchOptions(), started=started)
    async with app.run_test(size=(120, 30)) as pilot:
        seen = DashboardPilot(pilot, app)
        await seen.dialog("MainScreen")
        await seen.app.push_screen(NewJobDialog("A new job", {"text": "Tidy"}, {}))
        for _ in range(tabs):
            await seen.press("tab")
        await seen.press("ctrl+c")
        await seen.dialog("QuitDialog")
        await seen.press("escape")
        await seen.dialog("NewJobDialog")
        assert seen.app.screen.query(MultilineInput).first().text == "Tidy"


async def test_quitting_preselects_to_leave_the_processes_running(tmp_path: Path) -> None:
    started = SupervisedProcesses(1, tmp_path / "log")
    app = Dashboard(connection(RUNTIME, ANNA), LaunchOptions(), started=started)
    async with app.run_test(size=(120, 30)) as pilot:
        seen = DashboardPilot(pilot, app)
        await seen.dialog("MainScreen")
        await seen.press("q")
        await seen.dialog("QuitDialog")
        await seen.press("enter")
    assert app.return_value == "leave"


async def test_ctrl_c_copies_the_selection() -> None:
    async with shown() as seen:
        await seen.app.push_screen(NewJobDialog("A new job", {"text": "Tidy"}, {}))
        seen.app.screen.query(MultilineInput).first().select_all()
        await seen.press("ctrl+c")
        assert (seen.app.clipboard, type(seen.app.screen)) == ("Tidy", NewJobDialog)


async def test_a_form_is_drawn_in_a_terminal_without_columns_for_its_text() -> None:
    async with shown() as seen:
        await seen.app.push_screen(NewJobDialog("A new job", {}, {}))
        text = seen.app.screen.query(MultilineInput).first()
        assert text.render_line(0).text.startswith("instructions")
        await seen.pilot.resize_terminal(20, 6)
        assert (text.content_size.width, text.render_line(0).text) == (0, "")
