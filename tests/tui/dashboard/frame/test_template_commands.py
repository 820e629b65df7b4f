"""Templates in the dashboard: the form of their parameters, and removal."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from tests.tui.dashboard.pilot import open_dashboard

PARAMETERS = {
    "properties": {"days": {"type": "integer", "default": 7}, "level": {"enum": ["low", "high"]}},
}


async def test_a_template_is_run_from_its_form(rt: Runtime, owner: Actor) -> None:
    fields = {"type": "http_request", "payload": {"url": "https://example.org/{days}/{level}"}}
    await rt.templates.add("report", define({"parameters": PARAMETERS} | fields), owner)
    async with open_dashboard(rt, owner, view="templates") as seen:
        await seen.see("report", "days, level")
        await seen.press("r")
        await seen.dialog("ParametersDialog")
        await seen.see("Run report", "days", "● not set")
        await seen.press("backspace", "x", "enter")
        await seen.see("▲ must be a whole number, not 'x'")
        await seen.press("backspace", "3", "tab", "right", "right", "enter")
        await seen.wait_for_toast("D-1 created")
        await seen.dialog("MainScreen")
    job = await rt.read_model.job(1)
    assert job.payload["url"] == "https://example.org/3/high"
    assert (job.template, job.template_version, job.source) == ("report", 1, "cli")


async def test_a_template_without_parameters_is_confirmed_and_removed(
    rt: Runtime, owner: Actor
) -> None:
    fields = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    await rt.templates.add("ping", define(fields), owner)
    async with open_dashboard(rt, owner, view="templates") as seen:
        await seen.see("ping")
        await seen.press("r")
        await seen.see("Run template ping@1?")
        await seen.press("n")
        await seen.press("r")
        await seen.see("Run template ping@1?")
        await seen.press("y")
        await seen.wait_for_toast("D-1 created")
        await seen.command("templates")
        await seen.command("remove-template")
        await seen.see("Remove template ping?")
        await seen.press("y")
        await seen.wait_for_toast("Template ping removed")
        await seen.rows()
        await seen.command("run-template")
        await seen.wait_for_toast("choose a template first")
    assert (await rt.read_model.job(1)).template == "ping"
