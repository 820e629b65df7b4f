"""Starting a job from a form: of a described type, or of a template."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from typing import Any, Final

import pytest

from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from draftsman_testing.people import People
from tests.bots.web.web_side import Inbox, Visitor
from tests.support.described_types import registered

SCHEMA: Final[dict[str, Any]] = {
    "properties": {
        "note": {"type": "string", "maxLength": 999, "description": "Shown <first>."},
        "week": {"type": "integer", "maximum": 53, "title": "Week of the year"},
        "region": {"enum": ["eu", "us"], "default": "us"},
        "dry_run": {"type": "boolean"},
        "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed"]}},
        "extra": {"type": "object"},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["week"],
    "additionalProperties": False,
}
WEEKLY: Final = TypeDescription(
    name="report:weekly", place="a:b", description="Write the report.", parameters=SCHEMA
)
PATH: Final = "/start/type/report:weekly"
NOTE, WEEK, REGION, DRY_RUN, DAYS, EXTRA, DAY = (f"parameter:{n}" for n in range(7))


@pytest.fixture(autouse=True)
async def _described(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(service, "AGE", 0)
    async with registered(rt, WEEKLY):
        yield


@pytest.fixture
async def anna(inbox: Inbox, people: People) -> Visitor:
    return await inbox.visit(people.anna)


def problems(page: str) -> dict[str, str]:
    """Return the problem beside each field."""
    found = re.findall(r'<p class="wrong" id="(parameter:\d)-problem">(.*?)</p>', page)
    invalid = re.findall(r'aria-invalid="true" aria-describedby="(parameter:\d)-problem"', page)
    assert sorted(invalid) == sorted(id for id, _ in found)
    return {id: unescape(text) for id, text in found}


async def test_a_described_type_is_started_from_its_form(
    anna: Visitor, rt: Runtime, people: People
) -> None:
    assert 'href="/start"' in (await anna.get("/jobs")).text
    listed = (await anna.get("/start")).text
    assert 'href="/start/type/report%3Aweekly"' in listed
    assert "Write the report." in listed
    page = (await anna.get("/start/type/report%3Aweekly")).text
    assert page.index("Week of the year") < page.index("note")
    assert '<option value="#1" selected>us</option>' in page
    assert "Shown &lt;first&gt;." in page
    assert problems(page) == {}
    values = {WEEK: "31", NOTE: "a\r\nb", DRY_RUN: "false", EXTRA: '{"a": 1}', REGION: "#0"}
    values |= {f"{DAYS}#0": "yes", f"{DAYS}#2": "yes"}
    done = await anna.answer(PATH, **values)
    assert (done.status_code, done.headers["location"]) == (303, "/jobs/D-1")
    job = await rt.read_model.job(1)
    assert (job.type, job.invoker_id, job.source) == ("report:weekly", "anna", "web")
    assert job.payload == {
        "week": 31, "note": "a\nb", "dry_run": False, "days": ["mon", "wed"], "region": "eu",
        "extra": {"a": 1},
    }  # fmt: skip


async def test_a_form_without_values_has_the_defaults(anna: Visitor, rt: Runtime) -> None:
    empty = dict.fromkeys((NOTE, REGION, DRY_RUN, EXTRA), "")
    assert (await anna.answer(PATH, **{WEEK: "1"}, **empty)).status_code == 303
    assert (await rt.read_model.job(1)).payload == {"week": 1}


async def test_problems_are_beside_their_fields_and_nothing_entered_is_lost(
    anna: Visitor, rt: Runtime
) -> None:
    values = {WEEK: "soon", REGION: "#1", EXTRA: "{<", NOTE: "kept\nas it is", f"{DAYS}#1": "yes"}
    values[DAY] = "tomorrow"
    wrong = await anna.answer(PATH, **values)
    assert wrong.status_code == 422
    assert problems(wrong.text) == {
        WEEK: "Must be a whole number, not 'soon'.",
        DAY: "Must be a date, such as 2026-11-30, not 'tomorrow'.",
        EXTRA: "Must be an object of keys and values, not '{<'.",
    }
    for kept in (
        'value="soon"', "kept\nas it is</textarea>", "{&lt;</textarea>",
        'name="parameter:4#1" value="yes" checked', '<option value="#1" selected>us',
    ):  # fmt: skip
        assert kept in wrong.text, kept
    for sent, problem in (
        ({WEEK: "54"}, "Must be at most 53, not 54."),
        ({WEEK: ""}, "Is required."),
        ({}, "Is required."),
    ):
        wrong = await anna.answer(PATH, **sent)
        assert (wrong.status_code, problems(wrong.text)) == (422, {WEEK: problem})
    wrong = await anna.answer(PATH, **{WEEK: "1", REGION: "#7", DRY_RUN: "perhaps"})
    assert problems(wrong.text) == {
        REGION: "Must be eu or us, not '#7'.",
        DRY_RUN: "Must be true or false, not 'perhaps'.",
    }
    assert await rt.read_model.jobs() == []


async def test_a_form_starts_a_single_job(anna: Visitor, rt: Runtime) -> None:
    form = await anna.hidden(PATH)
    first, again = [await anna.post(PATH, {**form, WEEK: "1"}) for _ in range(2)]
    assert first.headers["location"] == again.headers["location"] == "/jobs/D-1"
    other = await anna.post(PATH, {**form, WEEK: "2"})
    assert other.status_code == 409
    assert "sent before as D-1" in other.text
    key = re.search(r'name="key" value="([^"]+)"', other.text)
    assert key is not None
    await anna.post(PATH, {**form, WEEK: "2", "key": key[1]})
    assert [job.number for job in await rt.read_model.jobs()] == [2, 1]


async def test_a_form_of_other_parameters_is_shown_again(anna: Visitor, rt: Runtime) -> None:
    form = await anna.hidden(PATH)
    changed = {"properties": {"note": {}, "week": {}, "year": {}}, "required": ["year"]}
    async with registered(rt, replace(WEEKLY, parameters=changed)):
        shown = await anna.post(PATH, {**form, WEEK: "7"})
        assert shown.status_code == 409
        assert "have changed meanwhile" in shown.text
        assert 'value="7"' in shown.text
        assert ">year</label>" in shown.text
    assert await rt.read_model.jobs() == []


async def test_only_people_who_may_submit_start_a_job(
    inbox: Inbox, people: People, anna: Visitor, rt: Runtime
) -> None:
    form = await anna.hidden(PATH)
    ben = await inbox.visit(people.ben)
    for response in (
        await ben.get("/start"),
        await ben.get(PATH),
        await ben.post(PATH, {**form, WEEK: "1"}),
    ):
        assert response.status_code == 403
        assert "may not submit" in response.text
    assert (await inbox.visitor().get(PATH)).headers["location"].startswith("/sign-in")
    for fields, origin in (
        ({**form, "csrf": "x"}, ""),
        ({**form, "key": "short"}, ""),
        (form, "https://evil.example"),
        ({**form, **{f"x{n}": "" for n in range(20)}}, ""),
    ):
        refused = await anna.post(PATH, {**fields, WEEK: "1"}, origin=origin)
        assert refused.status_code in (400, 403)
    assert await rt.read_model.jobs() == []


@pytest.mark.parametrize(
    "path", ["type/report:weakly", "template/none", "x/report:weekly", "type/"]
)
async def test_what_cannot_be_started_is_not_found(anna: Visitor, path: str) -> None:
    response = await anna.get(f"/start/{path}")
    assert response.status_code in (400, 404)
    if "weakly" in path:
        assert "did you mean report:weekly?" in response.text


async def test_a_template_is_started_in_its_version(
    anna: Visitor, rt: Runtime, owner: Actor
) -> None:
    fields = {"type": "http_request", "payload": {"url": "https://example.org/{days}"}}
    parameters = {"properties": {"days": {"type": "integer", "default": 7}}}
    await rt.templates.add("ping", define({**fields, "parameters": parameters}), owner)
    assert 'href="/start/template/ping"' in (await anna.get("/start")).text
    wrong = await anna.answer("/start/template/ping", **{NOTE: "many"})
    assert problems(wrong.text) == {NOTE: "Must be a whole number, not 'many'."}
    assert f'id="{NOTE}" name="{NOTE}" aria-invalid="true"' in wrong.text
    assert wrong.text.count(" autofocus") == 1
    assert "many" not in wrong.text.partition('<form class="card')[0]
    done = await anna.answer("/start/template/ping", **{NOTE: "3"})
    assert done.status_code == 303
    job = await rt.read_model.job(1)
    assert (job.payload["url"], job.template) == ("https://example.org/3", "ping")


async def test_a_template_of_a_type_asks_for_the_parameters_that_it_does_not_fix(
    anna: Visitor, rt: Runtime, owner: Actor
) -> None:
    fixed = {"region": "eu", "note": "n", "days": ["mon"], "extra": {}}
    await rt.templates.add("europe", define({"type": "report:weekly", "payload": fixed}), owner)
    page = (await anna.get("/start/template/europe")).text
    assert re.findall(r'<(?:input|select) id="(parameter:\d)"', page) == [NOTE, WEEK, REGION]
    assert "region" not in page
    wrong = await anna.answer("/start/template/europe", **{NOTE: "x"})
    assert problems(wrong.text) == {NOTE: "Must be a whole number, not 'x'."}
    await anna.answer("/start/template/europe", **{NOTE: "5", WEEK: "true"})
    assert (await rt.read_model.job(1)).payload == {**fixed, "week": 5, "dry_run": True}


async def test_a_template_and_a_type_of_a_name_are_both_listed(
    anna: Visitor, rt: Runtime, owner: Actor
) -> None:
    await rt.templates.add("report:weekly", define({"type": "report:weekly"}), owner)
    listed = (await anna.get("/start")).text
    for kind in ("template", "type"):
        assert f'href="/start/{kind}/report%3Aweekly"' in listed
