"""Templates of described job types: they fix some parameters, and people give the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from draftsman.errors import AmbiguousName, InvalidParameters, NotFound, UsageError
from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from tests.support.described_types import registered

SCHEMA: Final[dict[str, Any]] = {
    "properties": {
        "week": {"type": "integer"},
        "region": {"$ref": "#/$defs/Region"},
        "note": {"type": "string", "default": "none"},
    },
    "required": ["week", "region"],
    "additionalProperties": False,
    "$defs": {"Region": {"enum": ["eu", "us"]}},
}
WEEKLY: Final = TypeDescription(name="report:weekly", place="a:b", parameters=SCHEMA)


@pytest.fixture(autouse=True)
async def _described(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(service, "AGE", 0)
    async with registered(rt, WEEKLY):
        yield


async def added(rt: Runtime, owner: Actor, **fields: Any) -> None:
    await rt.templates.add("report", define({"type": "report:weekly"} | fields), owner)


async def payload(rt: Runtime, **params: Any) -> dict[str, Any]:
    """Return the payload of the request, which a submission checks, too."""
    request = await rt.templates.request("report", EnteredForm(params))
    await rt.published_types.check(WEEKLY, [request.payload])
    return dict(request.payload)


async def test_the_parameters_are_those_that_the_payload_does_not_fix(
    rt: Runtime, owner: Actor
) -> None:
    await added(rt, owner, payload={"region": "eu"})
    form = await rt.job_forms.find("report")
    assert list(form.inputs.properties) == ["week", "note"]
    assert form.inputs.required == ["week"]
    assert await payload(rt, week=3) == {"region": "eu", "week": 3}
    assert await payload(rt, week=3, note="x") == {"region": "eu", "week": 3, "note": "x"}
    with pytest.raises(InvalidParameters) as refused:
        await payload(rt, note=7)
    assert refused.value.problems == {"week": "is required", "note": "must be text, not 7"}
    with pytest.raises(UsageError, match="unknown parameter 'region'"):
        await payload(rt, week=1, region="us")


async def test_parameters_of_its_own_replace_those_of_the_type(rt: Runtime, owner: Actor) -> None:
    own = {"properties": {"week": {"type": "integer", "maximum": 9}, "name": {}, "note": {}}}
    await added(rt, owner, payload={"note": "{note} for {name}"}, title="{week}", parameters=own)
    form = await rt.job_forms.find("report")
    assert list(form.inputs.properties) == ["week", "region", "name", "note"]
    assert form.inputs.properties["region"] == {"enum": ["eu", "us"]}
    assert form.inputs.required == ["week", "region"]
    with pytest.raises(InvalidParameters, match="week: must be at most 9, not 10"):
        await payload(rt, week=10, region="eu")
    assert await payload(rt, week=9, region="us", note="n", name="a") == {
        "week": 9,
        "region": "us",
        "note": "n for a",
    }


async def test_a_parameter_that_the_payload_uses_is_not_passed_on(
    rt: Runtime, owner: Actor
) -> None:
    own = {"properties": {"note": {"enum": ["eu", "us"]}}, "required": ["note"]}
    await added(rt, owner, payload={"region": "{note}"}, parameters=own)
    assert await payload(rt, week=3, note="us") == {"region": "us", "week": 3}


async def test_a_template_of_an_undescribed_type_has_its_own_parameters(
    rt: Runtime, owner: Actor
) -> None:
    await added(rt, owner, type="other", parameters={"properties": {"a": {}}})
    assert list((await rt.job_forms.find("report")).inputs.properties) == ["a"]
    await added_again(rt, owner)
    assert (await rt.job_forms.find("fixed")).inputs.properties == {}


async def added_again(rt: Runtime, owner: Actor) -> None:
    every = {"week": 1, "region": "eu", "note": "n"}
    await rt.templates.add("fixed", define({"type": "report:weekly", "payload": every}), owner)


async def test_a_name_of_both_is_refused_with_both_spellings(rt: Runtime, owner: Actor) -> None:
    every = {"type": "report:weekly", "payload": {"week": 1, "region": "eu"}}
    await rt.templates.add("report:weekly", define(every), owner)
    both = "write template/report:weekly or type/report:weekly"
    with pytest.raises(AmbiguousName, match=both):
        await rt.job_forms.find("report:weekly")
    paths = ["template/report:weekly", "type/report:weekly"]
    assert [(await rt.job_forms.find(path)).path for path in paths] == paths
    assert [form.path for form in await rt.job_forms.all()] == paths
    assert (await rt.job_forms.find("report:weekly@1")).path == paths[0]
    await rt.templates.remove("report:weekly", owner)
    assert (await rt.job_forms.find("report:weekly")).path == paths[1]
    for name in ("template/report:weekly", "type/report:daily", "daily"):
        with pytest.raises(NotFound):
            await rt.job_forms.find(name)
