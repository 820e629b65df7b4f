"""`submit` with the parameters of a described type as options."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.runtime import Runtime
from tests.support.cases import cases
from tests.support.described_types import registered
from tests.tui.cli.cli_runner import COMMAND, Cli
from tests.tui.cli.test_job_types import SCHEMA, WEEKLY

PROPERTIES: dict[str, Any] = {
    **SCHEMA["properties"],
    "dry_run": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "title": {"type": "string"},
}


@pytest.fixture(autouse=True)
async def _described(rt: Runtime) -> AsyncIterator[None]:
    described = WEEKLY.__class__(
        name="report:weekly",
        place="company.jobs:weekly",
        description="Write the weekly report.",
        title="Report of week {week}",
        parameters={**SCHEMA, "properties": PROPERTIES, "additionalProperties": False},
    )
    async with registered(rt, described):
        yield


@cases(
    ("line", "payload"),
    [
        ("report:weekly --week 31", {"week": 31}),
        ("--key k --unchecked report:weekly --week 4", {"week": 4}),
        ("report:weekly --week=31 --region us", {"week": 31, "region": "us"}),
        ("report:weekly --dry-run --week 31", {"week": 31, "dry_run": True}),
        ("--type report:weekly --week 31 --no-dry-run", {"week": 31, "dry_run": False}),
        ("report:weekly --week 1 --tags a --tags b,c", {"week": 1, "tags": ["a", "b", "c"]}),
        ("report:weekly --param week=2 --param title=T", {"week": 2, "title": "T"}),
        ('report:weekly --payload {"note":"x"} --week 3', {"week": 3, "note": "x"}),
    ],
)
async def test_parameters_are_options(
    cli: Cli, rt: Runtime, line: str, payload: dict[str, Any]
) -> None:
    result = await cli("submit", *line.split(), "--priority", "7")
    assert result.code == 0, result
    job = await rt.read_model.job(int(result.out.split()[0].removeprefix("D-")))
    assert (job.type, job.payload, job.priority) == ("report:weekly", payload, 7)
    assert job.title == f"Report of week {payload['week']}"


@cases(
    ("line", "problem"),
    [
        ("report:weekly", "report:weekly requires --week; see: draftsman types report:weekly"),
        ("report:weekly --weak 31", "no such option: --weak; did you mean --week?"),
        ("report:weekly --week", "--week requires a value: integer"),
        ("report:weekly --week 1 --week 2", "the parameter week is given twice"),
        ("report:weekly --week 1 --param week=2", "the parameter week is given twice"),
        (
            "report:weekly --week 1 --key a b c",
            "report:weekly takes no text, only options: 'b' belongs to none; quote a value with",
        ),
        ("report:weekly 31", "report:weekly takes no text, only options: '31' belongs to none"),
        ("report:weekly --week 1 -- b", "report:weekly takes no text, only options: 'b' belongs"),
        (
            "report:weekly --week x",
            "payload of report:weekly: week: must be a whole number, not 'x'",
        ),
        ("report:weekly --week 1 --region de", "region: must be eu or us, not 'de'"),
        (
            "--type other --week 31",
            "--week: no worker has published the type 'other' yet; to start one that declares it:",
        ),
        (
            "report:weakly --week 3",
            "no worker has published the type 'report:weakly' yet; did you mean report:weekly?",
        ),
        ("report:weakly --param week=3", "type 'report:weakly' yet; did you mean report:weekly?"),
        ("--type report:weakly --week 3", "'report:weakly' yet; did you mean report:weekly?"),
        (
            "shop:refund --param order=7",
            "--param order: no worker has published the type 'shop:refund' yet; to start one",
        ),
        ("--repo . --weak 31 text", "no such option --weak"),
        (
            "--week 31 report:weekly",
            "no such option --week; name a type before its options: draftsman submit report:weekly",
        ),
        (
            "fix:it --weak",
            "no such option --weak, and no worker has published the type 'fix:it'",
        ),
        ("--param a=b text", "--param requires a described type"),
    ],
)
async def test_wrong_options_are_named(cli: Cli, line: str, problem: str) -> None:
    assert problem in (await cli("submit", *line.split())).refused(2)


async def test_run_takes_parameters_as_options(cli: Cli, rt: Runtime) -> None:
    result = await cli("run", "report:weekly", "--week", "31", "--timeout", "0.01s")
    assert result.code == 1, result
    assert (await rt.read_model.job(1)).payload == {"week": 31}
    wrong = await cli("run", "report:weekly", "--weak", "31")
    assert "no such option: --weak; did you mean --week?" in wrong.refused(2)


async def test_a_first_word_that_is_no_type_is_text(cli: Cli, rt: Runtime) -> None:
    line = ("fix:it", "now", "--repo", "https://example.org/a.git", "--agent", "tidy")
    result = await cli("submit", *line, "--unchecked", "--", "--week")
    assert result.code == 0, result
    job = await rt.read_model.job(1)
    assert (job.type, job.agent_request.text) == ("run_agent", "fix:it now --week")


async def test_the_help_and_the_completion_know_the_parameters(cli: Cli) -> None:
    page = (await cli("submit", "report:weekly", "--help")).out
    assert "Parameters of report:weekly:" in page
    assert "--week" in page
    assert "integer, required, of the year" in page
    assert "Parameters of" not in (await cli("submit", "--help")).out


@cases(
    ("words", "completed"),
    [
        ("rep", ["report:weekly"]),
        ("report:weekly --reg", ["--region"]),
        ("report:weekly --region ", ["eu", "us"]),
        ("report:weekly --region e", ["eu"]),
        ("report:weekly ", []),
    ],
)
async def test_the_shell_completes_types_options_and_values(
    database_url: str, words: str, completed: list[str]
) -> None:
    line = f"draftsman submit {words}"
    env = {
        "_DRAFTSMAN_COMPLETE": "bash_complete",
        "DRAFTSMAN_DATABASE_URL": database_url,
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    child = await asyncio.create_subprocess_exec(
        *COMMAND, env={**os.environ, **env}, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    assert [item.partition(",")[2] for item in out.decode().split()] == completed


async def test_a_template_of_the_type_takes_the_parameters_that_it_does_not_fix(
    cli: Cli, rt: Runtime
) -> None:
    fixed = ("--type", "report:weekly", "--payload", '{"region": "us"}')
    assert (await cli("templates", "add", "europe", *fixed)).code == 0
    shown = (await cli("templates", "show", "europe")).out
    assert ("week: integer" in shown, "region: eu|us" in shown) == (True, False)
    wrong = await cli("templates", "run", "europe", "--param", "week=x")
    assert "week: must be a whole number, not 'x'" in wrong.refused(2)
    done = await cli("templates", "run", "europe", "--param", "week=3", "--param", "dry_run=yes")
    assert done.code == 0, done
    assert (await rt.read_model.job(1)).payload == {"region": "us", "week": 3, "dry_run": True}


async def test_a_name_of_a_template_and_a_type_is_refused_with_both_commands(
    cli: Cli, rt: Runtime
) -> None:
    added = await cli("templates", "add", "report:weekly", "--type", "report:weekly")
    assert added.code == 0, added
    both = "write --type report:weekly, or draftsman templates run report:weekly"
    assert both in (await cli("submit", "report:weekly", "--week", "3")).refused(2)
    assert (await cli("submit", "--type", "report:weekly", "--week", "3")).code == 0
    assert (await cli("templates", "run", "report:weekly", "--param", "week=4")).code == 0
    assert [(await rt.read_model.job(job)).payload for job in (1, 2)] == [{"week": 3}, {"week": 4}]
