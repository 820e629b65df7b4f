"""Schedules in the dashboard."""

from __future__ import annotations

from draftsman.jobs.job import Source
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman_testing.people import People
from tests.tui.dashboard.pilot import open_dashboard

REQUEST = {"type": "http_request", "payload": {"url": "https://example.org/"}}


async def test_a_schedule_is_paused_resumed_run_and_removed(rt: Runtime, people: People) -> None:
    anna = people.on(Source.TUI, "anna")
    await rt.schedules.add(ScheduleSpec("hourly", "@hourly", request=REQUEST), anna)
    async with open_dashboard(rt, anna, view="schedules") as seen:
        await seen.see("hourly", "@hourly", "http_request")
        await seen.press("p")
        await seen.dialog("PromptDialog")
        await seen.paste("freeze")
        await seen.press("enter")
        await seen.wait_for_toast("Schedule hourly paused")
        await seen.see("paused")
        await seen.press("p")
        await seen.wait_for_toast("Schedule hourly resumed")
        await seen.press("r")
        await seen.see("Run schedule hourly now?")
        await seen.press("y")
        await seen.wait_for_toast("D-1 created")
        await seen.see("fired")
        await seen.press("h")
        await seen.see("fired D-1: run by anna", "next")
        await seen.press("escape")
        await seen.command("remove-schedule")
        await seen.see("Remove schedule hourly?")
        await seen.press("y")
        await seen.wait_for_toast("Schedule hourly removed")
        await seen.rows()
        for command in ("pause-schedule", "run-schedule", "history", "remove-schedule"):
            await seen.command(command)
            await seen.wait_for_toast("choose a schedule first")
    assert await rt.schedules.all() == []
