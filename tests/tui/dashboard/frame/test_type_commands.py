"""Described job types in the dashboard: their table, and the form of their parameters."""

from __future__ import annotations

from draftsman.job_types.published.description import TypeDescription
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from draftsman_tui.dashboard.widgets.field import FieldRow
from tests.support.described_types import registered
from tests.tui.dashboard.pilot import open_dashboard


async def test_a_type_is_run_from_its_form(rt: Runtime, owner: Actor) -> None:
    schema = {
        "properties": {
            "week": {"type": "integer"},
            "region": {"$ref": "#/$defs/Region", "default": "eu"},
        },
        "required": ["week"],
        "$defs": {"Region": {"enum": ["eu", "us"]}},
    }
    described = TypeDescription(
        name="report:weekly", place="a:b", description="Write it.", parameters=schema
    )
    async with registered(rt, described), open_dashboard(rt, owner, view="types") as seen:
        await seen.see("report:weekly", "week, region", "Write it.")
        await seen.press("r")
        await seen.dialog("ParametersDialog")
        await seen.see("Run report:weekly", "week", "● eu")
        await seen.press("x", "enter")
        await seen.see("▲ must be a whole number, not 'x'")
        await seen.press("backspace", "3", "tab", "right", "enter")
        await seen.wait_for_toast("D-1 created")
        await seen.press("n")
        await seen.see("ctrl+t: run a type of your own")
        await seen.press("ctrl+t")
        await seen.see("Run which type?", "report:weekly  Write it.")
        await seen.press("1")
        await seen.dialog("ParametersDialog")
        await seen.press("4", "enter")
        await seen.wait_for_toast("D-2 created")
    assert (await rt.read_model.job(2)).payload == {"week": 4, "region": "eu"}
    job = await rt.read_model.job(1)
    assert (job.type, job.payload, job.source) == (
        "report:weekly",
        {"week": 3, "region": "us"},
        "cli",
    )


async def test_a_template_of_a_type_asks_for_the_parameters_that_it_does_not_fix(
    rt: Runtime, owner: Actor
) -> None:
    schema = {"properties": {"week": {"type": "integer"}, "region": {}}, "required": ["week"]}
    described = TypeDescription(name="report:weekly", place="a:b", parameters=schema)
    fields = {"type": "report:weekly", "payload": {"region": "eu"}}
    await rt.templates.add("europe", define(fields), owner)
    async with registered(rt, described), open_dashboard(rt, owner, view="templates") as seen:
        await seen.see("europe")
        await seen.press("r")
        await seen.dialog("ParametersDialog")
        await seen.see("Run europe", "week")
        assert [row.field.name for row in seen.app.screen.query(FieldRow)] == ["week"]
        await seen.press("7", "enter")
        await seen.wait_for_toast("D-1 created")
    assert (await rt.read_model.job(1)).payload == {"region": "eu", "week": 7}
