"""Notifications cover nothing, and do not prevent the end."""

from __future__ import annotations

import pytest
from textual.notifications import Notification, Notify
from textual.widget import Widget
from textual.widgets._toast import Toast, ToastHolder, ToastRack

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.jobs.details.snapshot import JobLoaded
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.approval_dialog import ApprovalDialog
from tests.tui.dashboard.fixtures_data import GATE, PATCH, job_snapshot, question
from tests.tui.dashboard.pictures import SIZES, shown
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard


def _overlapped(seen: DashboardPilot) -> list[Widget]:
    """Return the widgets with text or an input under a notification, which is on the screen."""
    screen = seen.app.screen
    toasts = [toast.region for toast in screen.query(Toast)]
    assert toasts
    assert all(screen.region.contains_region(region) and region.height for region in toasts)
    content = (
        widget
        for widget in screen.walk_children(Widget)
        if not isinstance(widget, Toast | ToastHolder | ToastRack) and widget.display
        # a container only has room for its children
        if not widget.children and screen.region.contains_region(widget.region)
    )
    return [widget for widget in content if any(map(widget.region.overlaps, toasts))]


@pytest.mark.usefixtures("frozen")
async def test_toasts_cover_nothing() -> None:
    async with shown(toasts=True) as seen:
        screen = seen.app.main
        for nth in range(3):
            text = f"{nth}: {'a long reason ' * 8}"
            screen.notify(text, severity="error", timeout=600, markup=False)
        await seen.see("0: a long", "2: a long")
        for size in SIZES:
            await seen.pilot.resize_terminal(*size)
            for key in ("home", "end"):
                await seen.press(key)
                await seen.until(lambda: any(line.startswith("▸") for line in seen.lines))
                assert not _overlapped(seen)
        await seen.press("colon")
        await seen.until(lambda: bool(screen.query("CommandLine.open")))
        assert not _overlapped(seen)
        await seen.press("escape")
        screen.open_job(142, "diff")
        await seen.dialog("JobScreen")
        seen.app.screen.post_message(JobLoaded(job_snapshot()))
        await seen.see("- import os", "2: a long")
        assert not _overlapped(seen)
        for dialog in (ApprovalDialog(GATE, diff=PATCH), AnswerDialog(question())):
            await seen.app.push_screen(dialog)
            for size in SIZES:
                await seen.pilot.resize_terminal(*size)
                await seen.until(lambda: bool(seen.app.screen.query(Toast)))
                assert not _overlapped(seen)


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
