"""Notifications never cover the row under the cursor, and do not prevent the end."""

from __future__ import annotations

import pytest
from textual.notifications import Notification, Notify
from textual.widgets._toast import Toast

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard


def _covered(seen: DashboardPilot) -> list[range]:
    regions = [toast.region for toast in seen.app.screen.query(Toast)]
    return [range(region.y, region.bottom) for region in regions if region.height]


@pytest.mark.parametrize(
    "size",
    [
        (80, 24),
        pytest.param(
            (140, 40), marks=pytest.mark.slow(fast="test_toasts_are_in_the_half_without_the_cursor")
        ),
    ],
)
async def test_toasts_are_in_the_half_without_the_cursor(
    make: Factory, rt: Runtime, owner: Actor, size: tuple[int, int]
) -> None:
    for _ in range(size[1]):
        await make.failed()
    async with open_dashboard(rt, owner, size=size, toasts=True) as seen:
        await seen.until(lambda: len(seen.keys) == size[1])
        screen = seen.app.screen
        assert isinstance(screen, BaseScreen)
        for nth in range(3):
            screen.show_error(f"{nth}: {'a long reason ' * 8}")
        await seen.until(lambda: len(_covered(seen)) == 3)
        for key in ("home", "end", "home"):
            await seen.press(key)
            await seen.until(lambda: bool(_covered(seen)))
            assert screen.cursor_line is not None
            assert seen.lines[screen.cursor_line].startswith("▸")
            assert not any(screen.cursor_line in lines for lines in _covered(seen)), key
        await seen.job("D-1")
        job = seen.app.screen
        assert isinstance(job, BaseScreen)
        job.show_message("told in the job")
        await seen.see("told in the job")
        assert job.cursor_line is not None
        assert "▸" in seen.lines[job.cursor_line]
        assert not any(job.cursor_line in lines for lines in _covered(seen))


async def test_a_dialog_shows_a_notification_once(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner, toasts=True) as seen:
        seen.app.main.show_message("told before")
        await seen.see("told before")
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        await seen.see("told before")
        behind = seen.app.main.query(Toast)
        await seen.until(lambda: not any(toast.display for toast in behind))
        await seen.press("escape")
        await seen.dialog("MainScreen")
        await seen.until(lambda: any(toast.display for toast in seen.app.main.query(Toast)))


async def test_notification_after_the_screens_have_closed_is_ignored(
    rt: Runtime, owner: Actor
) -> None:
    async with open_dashboard(rt, owner) as seen:
        pass
    # the pump of the app receives messages until after it has closed its screens
    seen.app.on_notify(Notify(Notification("late")))
