"""Described job types in Slack: their form, and names that are templates, too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.schedules.template import define
from draftsman_bots.slack import ids
from tests.bots.slack.listeners.conftest import ANNA, SlackBotHarness
from tests.bots.slack.listeners.test_templates import add, block, errors, only_job, opened
from tests.support.described_types import registered

SCHEMA: dict[str, Any] = {
    "properties": {
        "week": {"title": "Week", "type": "integer", "maximum": 53},
        "region": {"$ref": "#/$defs/Region", "default": "eu"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["week"],
    "additionalProperties": False,
    "$defs": {"Region": {"enum": ["eu", "us"], "type": "string"}},
}


@pytest.fixture(autouse=True)
async def _weekly(bench: SlackBotHarness, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(service, "AGE", 0)
    described = TypeDescription(
        name="report:weekly",
        place="company.jobs:weekly",
        description="Write the report.\n\nWith care.",
        title="Report of week {week}",
        parameters=SCHEMA,
    )
    async with registered(bench.rt, described):
        yield


async def test_the_form_of_a_type_submits_its_job(bench: SlackBotHarness) -> None:
    view = await opened(bench, "run report:weekly")
    assert view["title"]["text"] == "Run report:weekly"
    await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "54"})
    assert await errors(bench) == {"Week": "must be at most 53, not 54"}
    values = {block(view, "Week"): "31", block(view, "region"): "us", block(view, "note"): "x"}
    await bench.slack.submit(ANNA, view["id"], values, copies=3)
    job = await only_job(bench)
    assert (job.type, job.template, job.title) == (
        "report:weekly", None, "Report of week 31",
    )  # fmt: skip
    assert job.payload == {"week": 31, "region": "us", "note": "x"}
    assert (job.source, job.invoker_id) == ("slack", "anna")
    (target,) = await bench.rt.outbox.targets(job.number)
    assert target.target == bench.general


async def test_values_in_the_text_need_no_form(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "run report:weekly week=31")
    assert ack.body["text"].startswith("D-1 is queued")
    assert (await only_job(bench)).payload == {"week": 31}
    for text, problem in [
        (
            "run report:weekly week=x",
            "payload of report:weekly: week: must be a whole number, not 'x'",
        ),
        ("run report:weekly weak=1", "unknown parameter 'weak'; did you mean week?"),
        (
            "run type/report:weakly",
            "no worker has published the type 'report:weakly' yet; did you",
        ),
        ("run types/report:weekly", "write NAME, template/NAME or type/NAME"),
    ]:
        ack = await bench.slack.command(ANNA, bench.general, text)
        assert problem in ack.body["text"]


async def test_a_name_that_is_a_template_and_a_type_is_refused_with_both_spellings(
    bench: SlackBotHarness,
) -> None:
    await add(bench, "report:weekly", None)
    ack = await bench.slack.command(ANNA, bench.general, "run report:weekly")
    assert "write template/report:weekly or type/report:weekly" in ack.body["text"]
    ack = await bench.slack.command(ANNA, bench.general, "run template/report:weekly")
    assert ack.body["text"].startswith("D-1 is queued")
    view = await opened(bench, "run type/report:weekly")
    await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "1"})
    jobs = [await bench.rt.read_model.job(number) for number in (1, 2)]
    assert [(job.type, job.template) for job in jobs] == [
        ("http_request", "report:weekly"), ("report:weekly", None),
    ]  # fmt: skip


async def test_a_form_of_another_description_is_opened_again(bench: SlackBotHarness) -> None:
    view = await opened(bench, "run report:weekly")
    changed = TypeDescription(name="report:weekly", place="a:b", parameters=SCHEMA, title="x")
    async with registered(bench.rt, changed):
        await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "1"})
        assert await errors(bench) == {"Week": "this form is not valid any more; open it again"}
    assert await bench.jobs() == []


async def test_the_list_has_a_button_for_each_type(bench: SlackBotHarness) -> None:
    ack = await bench.slack.command(ANNA, bench.general, "templates")
    assert ack.body["text"] == "Templates: report:weekly"
    message = bench.slack.ephemerals(bench.general, ANNA)[-1]
    assert message["blocks"][0]["text"]["text"] == (
        "*report:weekly* Write the report.\nweek, region, note"
    )
    pressed = f"{ids.TEMPLATE}:type/report:weekly"
    await bench.slack.press(ANNA, bench.general, message["ts"], pressed)
    await bench.ctx.background.idle()
    (view,) = bench.slack.views(ANNA)
    await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "1"})
    assert (await only_job(bench)).type == "report:weekly"


async def test_the_form_of_a_template_has_the_parameters_that_it_does_not_fix(
    bench: SlackBotHarness,
) -> None:
    fixed = {"type": "report:weekly", "payload": {"region": "us"}}
    await bench.rt.templates.add("america", define(fixed), bench.make.owner)
    view = await opened(bench, "run america")
    labels = [b["label"]["text"] for b in view["blocks"] if b["type"] == "input"]
    assert labels == ["Week", "note"]
    await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "54"})
    assert await errors(bench) == {"Week": "must be at most 53, not 54"}
    await bench.slack.submit(ANNA, view["id"], {block(view, "Week"): "7"})
    job = await only_job(bench)
    assert (job.template, job.payload) == ("america", {"region": "us", "week": 7})
