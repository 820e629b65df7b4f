"""`types`: the job types that workers have described."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.support.described_types import registered
from tests.tui.cli.cli_runner import Cli

SCHEMA: dict[str, Any] = {
    "properties": {
        "week": {"type": "integer", "description": "of the year"},
        "region": {"enum": ["eu", "us"], "default": "eu"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["week"],
}
WEEKLY = TypeDescription(
    name="report:weekly",
    place="company.jobs:weekly",
    description="Write the weekly report.\n\nFor all regions.",
    title="Report of week {week}",
    queue="reports",
    parameters=SCHEMA,
    limits={"timeout": 60.0},
    aliases=("report",),
)


@pytest.fixture
async def _described(rt: Runtime) -> AsyncIterator[None]:
    async with registered(rt, WEEKLY):
        yield


async def test_without_a_description_it_says_what_to_do(cli: Cli) -> None:
    assert (await cli("types")).err == (
        "no job types yet: a worker publishes those of its code a moment after its start;"
        " to start one with your code: draftsman up --app MODULE\n"
    )
    missing = (await cli("types", "report:weekly")).refused(3)
    assert "no worker has published the type 'report:weekly' yet" in missing


@pytest.mark.usefixtures("_described")
async def test_the_types_are_listed(cli: Cli) -> None:
    (row,) = (await cli("types", "--json")).json
    assert (row["name"], row["place"], row["workers"]) == (
        "report:weekly",
        "company.jobs:weekly",
        1,
    )
    assert row["parameters"] == SCHEMA
    assert list(row["parameters"]["properties"]) == ["week", "region", "note"]
    shown = (await cli("types")).out
    assert "week, region, note" in shown
    assert "Write the weekly report." in shown
    assert "For all regions" not in shown


@pytest.mark.usefixtures("_described")
async def test_a_type_is_shown_with_its_parameters_limits_and_waiting_jobs(
    cli: Cli, rt: Runtime, owner: Actor
) -> None:
    shown = (await cli("types", "report")).out
    assert "  week: integer, required, of the year\n" in shown
    assert '  region: eu|us, default "eu"\n' in shown
    assert "  note: string, default null\n" in shown
    assert "title        Report of week {week}" in shown
    assert "timeout          60.0     code" in shown
    assert "max_retries      3        built in" in shown
    limits = " ".join(shown.partition("Limits")[2].split())
    assert "an exception such as ValueError both" in limits
    await rt.submissions.submit(invocation(type="report:weekly", payload={"week": 1}), owner)
    changed = {"properties": {"week": {"type": "string"}}}
    async with registered(rt, replace(WEEKLY, parameters=changed)):
        result = await cli("types", "report:weekly")
        assert "1 waiting job does not fit these parameters, and will fail when run:" in result.err
        assert "  D-1: week: must be text, not 1" in result.err
        document = (await cli("types", "report:weekly", "--json")).json
    assert document["waiting_jobs"] == {
        "checked": 1,
        "migrated": 0,
        "unfit": {"D-1": "week: must be text, not 1"},
        "has_more": False,
    }
    migrating = replace(WEEKLY, parameters=changed, payload_version=2, migrates=True)
    async with registered(rt, migrating):
        result = await cli("types", "report:weekly")
    assert "1 waiting job of older versions: migrated to version 2 when run" in result.err
    assert "version      2" in result.out
    assert {"name": "max_retries", "value": 3, "source": "built in"} in document["limits"]
