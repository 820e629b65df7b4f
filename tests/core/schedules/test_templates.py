"""Templates: versions, and the jobs that are made from them."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import Conflict, NotFound, NotPermitted, UsageError
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import TemplateRef
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import Template, TemplateDefinition, define
from draftsman_testing.factories import Factory
from draftsman_testing.people import People

PARAMETERS = {
    "properties": {"days": {"type": "integer", "maximum": 31}, "level": {"enum": ["low", "high"]}},
    "required": ["days"],
}


def definition(**fields: Any) -> TemplateDefinition:
    payload = {"days": "{days}", "level": "{level}"}
    return define({"type": "noop", "parameters": PARAMETERS, "payload": payload} | fields)


async def _run(rt: Runtime, name: str, owner: Actor, **params: Any) -> int:
    request = await rt.templates.request(name, EnteredForm(params), unchecked=True)
    return (await rt.submissions.submit(request, owner)).number


async def test_a_job_keeps_the_version_that_it_was_made_from(rt: Runtime, owner: Actor) -> None:
    first = await rt.templates.add("report", definition(tags=("a",)), owner)
    one = await _run(rt, "report", owner, days=3)
    second = await rt.templates.edit(first, definition(tags=("b",)), owner)
    assert (first.version, second.version) == (1, 2)
    two = await _run(rt, "report", owner, days=3)
    old = await _run(rt, "report@1", owner, days=3)
    jobs = [await rt.read_model.job(number) for number in (one, two, old)]
    assert [(job.template, job.template_version, job.tags) for job in jobs] == [
        ("report", 1, ["a"]),
        ("report", 2, ["b"]),
        ("report", 1, ["a"]),
    ]
    assert jobs[0].payload == {"days": 3, "level": None}
    listed = {job.number: job.template for job in await rt.read_model.jobs()}
    assert listed == {one: "report", two: "report", old: "report"}


async def test_a_retry_keeps_the_template(rt: Runtime, make: Factory, owner: Actor) -> None:
    await rt.templates.add("report", definition(), owner)
    number = await _run(rt, "report", owner, days=3)
    await rt.job_control.cancel(number, owner)
    retry = await rt.job_control.retry(number, owner)
    job = await rt.read_model.job(retry.number)
    assert (job.template, job.template_version) == ("report", 1)


async def test_the_same_definition_is_no_new_version(rt: Runtime, owner: Actor) -> None:
    first = await rt.templates.add("report", definition(), owner)
    assert (await rt.templates.edit(first, definition(), owner)).version == 1
    assert len(await rt.templates.versions("report")) == 1


async def test_an_edit_of_an_old_version_is_refused(rt: Runtime, owner: Actor) -> None:
    first = await rt.templates.add("report", definition(), owner)
    await rt.templates.edit(first, definition(tags=("b",)), owner)
    with pytest.raises(Conflict, match="was changed meanwhile"):
        await rt.templates.edit(first, definition(tags=("c",)), owner)
    with pytest.raises(Conflict, match="template report exists"):
        await rt.templates.add("report", definition(), owner)


async def test_a_removed_template_runs_no_job_and_its_name_continues(
    rt: Runtime, owner: Actor
) -> None:
    await rt.templates.add("report", definition(), owner)
    await rt.templates.remove("report", owner)
    assert await rt.templates.all() == []
    for call in (rt.templates.get("report"), rt.templates.remove("report", owner)):
        with pytest.raises(NotFound, match="template report was removed"):
            await call
    assert (await rt.templates.get("report@1")).version == 1
    again = await rt.templates.add("report", definition(), owner)
    assert again.version == 3
    assert [template.version for template in await rt.templates.versions("report")] == [3, 2, 1]
    with pytest.raises(NotFound, match="has no version 2"):
        await rt.templates.get("report@2")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({}, "days: is required"),
        ({"days": 40}, "days: must be at most 31, not 40"),
        ({"days": 1, "level": "x"}, "level: must be low or high, not 'x'"),
        ({"day": 1}, "unknown parameter 'day'; did you mean days"),
    ],
)
async def test_wrong_parameters_are_refused_with_what_is_allowed(
    rt: Runtime, owner: Actor, params: dict[str, Any], problem: str
) -> None:
    await rt.templates.add("report", definition(), owner)
    with pytest.raises(UsageError, match=problem):
        await rt.templates.request("report", EnteredForm(params))
    assert await rt.read_model.jobs() == []


async def test_fields_replace_those_of_the_template(rt: Runtime, owner: Actor) -> None:
    await rt.templates.add("report", definition(priority=1), owner)
    request = await rt.templates.request(
        "report",
        EnteredForm({"days": "2"}, typed=True, fields={"priority": 7, "key": "k"}),
        unchecked=True,
    )
    assert (request.priority, request.key, request.payload["days"]) == (7, "k", 2)
    assert request.template == TemplateRef(name="report", version=1, parameters={"days": 2})


async def test_an_invalid_schema_is_refused(rt: Runtime, owner: Actor) -> None:
    wrong = {"properties": {"days": {"type": "whole"}}}
    with pytest.raises(UsageError, match="parameters: not a valid JSON Schema"):
        await rt.templates.add("x", define({"type": "noop", "parameters": wrong}), owner)


async def test_unknown_overrides_are_refused_when_the_template_is_stored(
    rt: Runtime, owner: Actor
) -> None:
    fields = {"type": "http_request", "parameters": {"properties": {"n": {}}}}
    with pytest.raises(UsageError, match="overrides: unknown override cal_timeout"):
        define({**fields, "overrides": {"cal_timeout": 5}})
    template = define({**fields, "overrides": {"n{n}": 1, "colour": "{n}"}})
    with pytest.raises(UsageError, match="overrides: unknown override colour"):
        await rt.templates.add("x", template, owner)
    assert await rt.templates.all() == []


async def test_unknown_names_are_refused_with_near_ones(rt: Runtime, owner: Actor) -> None:
    await rt.templates.add("report", definition(), owner)
    with pytest.raises(NotFound, match="unknown template 'reprot'; did you mean report"):
        await rt.templates.get("reprot")
    with pytest.raises(UsageError, match="a version is a number"):
        await rt.templates.get("report@new")
    with pytest.raises(NotFound, match="unknown template"):
        await rt.templates.versions("other")


async def test_only_operators_change_templates(rt: Runtime, people: People) -> None:
    template = await rt.templates.add("report", definition(), people.olga)
    for actor in (people.anna, people.mallory):
        for change in (
            rt.templates.add("other", definition(), actor),
            rt.templates.edit(template, definition(tags=("x",)), actor),
            rt.templates.edit(template, definition(), actor),
            rt.templates.remove("report", actor),
        ):
            with pytest.raises(NotPermitted, match="may not change templates"):
                await change


async def test_a_request_of_a_missing_version_is_refused(rt: Runtime, owner: Actor) -> None:
    template = await rt.templates.add("report", definition(), owner)
    await rt.templates.remove("report", owner)
    for version in (2, 3):
        request = invocation(type="noop", template=TemplateRef(name="report", version=version))
        with pytest.raises(Exception, match=f"there is no template report@{version}"):
            await rt.submissions.submit(request, owner)
    batch = [invocation(type="noop", template=template.ref), invocation(type="noop")]
    jobs = await rt.submissions.submit_many(batch, owner)
    stored = [(await rt.read_model.job(job.number)).template for job in jobs]
    assert stored == ["report", None]
    batch[0] = invocation(type="noop", template=TemplateRef(name="x", version=1))
    with pytest.raises(Exception, match="there is no template x@1"):
        await rt.submissions.submit_many(batch, owner)


async def test_a_definition_of_a_newer_release_is_read(rt: Runtime, owner: Actor) -> None:
    async with rt.db.connection() as conn:
        await conn.execute(
            "INSERT INTO draftsman.job_templates (name, version, definition, created_by)"
            """ VALUES ('new', 1, '{"type": "noop", "shape": "round"}', 'x')"""
        )
    [template] = await rt.templates.all()
    assert isinstance(template, Template)
    assert template.definition == TemplateDefinition(type="noop")
