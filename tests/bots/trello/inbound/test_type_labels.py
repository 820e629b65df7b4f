"""Labels of described job types: parameters from the custom fields of the card."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import LabelRule
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.bots.trello.inbound.test_templates import comments
from tests.support.described_types import registered

SCHEMA: Final[dict[str, Any]] = {
    "properties": {
        "week": {"type": "integer", "maximum": 53},
        "region": {"enum": ["eu", "us"]},
        "due_day": {"type": "string", "format": "date"},
        "dry_run": {"type": "boolean", "default": True},
        "note": {"type": "string"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "required": ["week"],
    "additionalProperties": False,
}
WEEKLY: Final = TypeDescription(
    name="report:weekly", place="a:b", title="Week {week}", parameters=SCHEMA
)


@pytest.fixture(autouse=True)
async def _described(
    bench: TrelloBotHarness, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    monkeypatch.setattr(service, "AGE", 0)
    async with registered(bench.rt, WEEKLY):
        yield


async def watch(bench: TrelloBotHarness, form: str) -> None:
    await bench.watch(labels={bench.label: LabelRule(name="report", template=form)})


@pytest.mark.parametrize("form", ["report:weekly", "type/report:weekly"])
async def test_custom_fields_of_each_type_are_parameters(
    bench: TrelloBotHarness, trello: FakeTrello, form: str
) -> None:
    await watch(bench, form)
    card = bench.card("Numbers", desc="As always.")
    for name, type, value in (
        ("Week", "number", {"number": "31"}),
        ("Due day", "date", {"date": "2026-12-24T11:00:00.000Z"}),
        ("DRY_RUN", "checkbox", {"checked": "false"}),
        ("note", "text", {"text": "*as* it is: 7"}),
        ("Share", "number", {"number": "-0.5"}),
        ("Color", "text", {"text": "no parameter"}),
    ):
        trello.set_field(card, trello.custom_field(bench.board, name, type), value)
    region = trello.custom_field(bench.board, "region", "list", ["us", "eu"])
    trello.choose_option(card, region, "us")
    trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    [job] = await bench.jobs()
    assert job.type == "report:weekly"
    assert job.payload == {
        "week": 31, "due_day": "2026-12-24", "dry_run": False, "note": "*as* it is: 7",
        "share": -0.5, "region": "us",
    }  # fmt: skip
    assert (job.title, job.subject_key) == ("Week 31", f"trello:card:{card}")
    assert job.url == trello.card_now(card)["shortUrl"]
    assert await bench.keys() == [bench.key(card)]


async def test_what_does_not_fit_is_said_in_one_comment(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await watch(bench, "report:weekly")
    week = trello.custom_field(bench.board, "Week", "number")
    region = trello.custom_field(bench.board, "Region", "list", ["eu", "asia"])
    card = bench.card("Numbers", labels=[bench.label])
    trello.set_field(card, week, {"number": "54.5"})
    trello.choose_option(card, region, "asia")
    for _ in range(3):
        await bench.poll()
    (comment,) = comments(trello, card)
    assert comment.startswith(
        "No job was created: report:weekly needs other parameters.\n\n"
        "- week: must be a whole number, not 54.5\n"
        "- region: must be eu or us, not 'asia'\n"
    )
    assert "Fill in custom fields with these names" in comment
    assert (await bench.jobs(), bench.labels(card)) == ([], [])
    assert bench.context.health.problems == {}
    trello.set_field(card, week, {"number": "7"})
    trello.choose_option(card, region, "eu")
    trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    [job] = await bench.jobs()
    assert job.payload == {"week": 7, "region": "eu"}


async def test_a_problem_of_all_parameters_is_said_in_a_comment(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    either = {"properties": {"a": {}, "b": {}}, "minProperties": 1}
    async with registered(bench.rt, TypeDescription(name="either", place="a:b", parameters=either)):
        await watch(bench, "either")
        card = bench.card("Numbers", labels=[bench.label])
        await bench.poll()
    (comment,) = comments(trello, card)
    assert comment.startswith("No job was created: payload of either: must not be empty")
    assert bench.labels(card) == []


async def test_a_template_fixes_parameters_and_the_card_gives_the_rest(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    fields = {"type": "report:weekly", "payload": {"region": "eu"}}
    await bench.rt.templates.add("europe", define(fields), bench.make.owner)
    await watch(bench, "europe")
    card = bench.card("Numbers", desc="note: hello", labels=[bench.label])
    trello.set_field(card, trello.custom_field(bench.board, "Week", "number"), {"number": "3"})
    await bench.poll()
    [job] = await bench.jobs()
    assert (job.template, job.payload) == ("europe", {"region": "eu", "week": 3, "note": "hello"})


async def test_a_name_of_a_template_and_a_type_is_refused_with_both_spellings(
    bench: TrelloBotHarness,
) -> None:
    defined = define({"type": "report:weekly", "payload": {"week": 1}})
    await bench.rt.templates.add("report:weekly", defined, bench.make.owner)
    await watch(bench, "report:weekly")
    bench.card("Numbers", labels=[bench.label])
    await bench.poll()
    assert await bench.jobs() == []
    (problem,) = bench.context.health.problems.values()
    assert "write template/report:weekly or type/report:weekly" in problem
    await watch(bench, "template/report:weekly")
    bench.card("Others", labels=[bench.label])
    await bench.poll()
    assert [job.template for job in await bench.jobs()] == ["report:weekly"]


def test_the_fake_refuses_values_that_trello_does_not_have(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card("Numbers")
    for type, value in (
        ("checkbox", {"checkbox": "true"}),
        ("checkbox", {"checked": True}),
        ("date", {"date": "2026-12-24"}),
        ("number", {"number": 7}),
        ("number", {"number": "."}),
        ("text", {"number": "7"}),
    ):
        field = trello.custom_field(bench.board, "x", type)
        with pytest.raises(Exception, match="Invalid custom field item value"):
            trello.set_field(card, field, value)
