"""`schedules apply`: the schedules of a file in a team's repository."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli

FILE = """\
name = "acme/pay"

[schedules.nightly]
cron = "0 2 * * *"
zone = "Europe/Berlin"
template = "ping"
params = { days = 3 }
jitter = "5m"

[schedules.poll]
every = "90m"
misfire = "all"
overlap = "queue"
request = { type = "http_request", payload = { url = "https://example.org/" }, tags = ["a"] }
"""
PING = ("--type", "http_request", "--payload", '{"url": "https://example.org/{days}"}')


@pytest.fixture
async def file(cli: Cli, tmp_path: Path) -> Path:
    """Give a file with two schedules."""
    await cli("templates", "add", "ping", "--parameter", "days:integer", *PING)
    path = tmp_path / "schedules.toml"
    path.write_text(FILE)
    return path


async def _rules(cli: Cli) -> dict[str, str]:
    listed = (await cli("schedules", "list", "--json")).json
    return {row["name"]: row["rule"] for row in listed}


async def test_a_file_is_applied_once_and_changes_are_planned(cli: Cli, file: Path) -> None:
    checked = await cli("schedules", "apply", file, "--check")
    checked.refused(1, "2 changes to apply")
    assert checked.out.startswith("+ nightly\n")
    assert await _rules(cli) == {}
    applied = await cli("schedules", "apply", file)
    assert applied.out.endswith("\nschedules of acme/pay applied: 2 changes\n")
    assert await _rules(cli) == {"nightly": "0 2 * * *", "poll": "@every 90m"}
    for again in (("--check",), ()):
        assert (await cli("schedules", "apply", file, *again)).err == "no changes\n"
    file.write_text(FILE.replace("90m", "2h"))
    changed = await cli("schedules", "apply", file)
    assert changed.out == (
        '~ poll\n    rule: "@every 90m" -> "@every 2h"\nschedules of acme/pay applied: 1 change\n'
    )
    assert (await cli("schedules", "apply", file, "--json")).json == {
        "changes": [],
        "applied": False,
    }


async def test_rules_in_english_are_those_of_add(cli: Cli, file: Path) -> None:
    file.write_text(
        FILE.replace('cron = "0 2 * * *"', 'when = "every weekday at 9"').replace(
            'every = "90m"', 'when = "on 2030-12-31 at 18:00 UTC"'
        )
    )
    await cli("schedules", "apply", file)
    await cli(
        *("schedules", "add", "same", "--when", "every weekday at 9", "--zone", "Europe/Berlin"),
        *("--template", "ping", "--param", "days=1"),
    )
    rules = await _rules(cli)
    assert rules["nightly"] == rules["same"] == "0 9 * * mon-fri"
    assert rules["poll"] == "@at 2030-12-31T18:00:00Z"
    assert (await cli("schedules", "apply", file)).err == "no changes\n"


async def test_an_unknown_repository_is_refused_with_the_command_that_adds_it(
    cli: Cli, file: Path
) -> None:
    request = 'request = { agent = "stub", repo = "shopp", text = "Tidy" }'
    file.write_text(f'name = "x"\n[schedules.a]\nevery = "1h"\n{request}\n')
    (await cli("schedules", "apply", file)).refused(2, "draftsman repos add")


async def test_schedules_are_removed_only_with_consent(cli: Cli, file: Path) -> None:
    await cli(
        "schedules", "add", "mine", "--every", "1h", "--template", "ping", "--param", "days=1"
    )
    await cli("schedules", "apply", file)
    file.write_text('name = "acme/pay"\n')
    refused = await cli("schedules", "apply", file)
    refused.refused(2, "Removes nightly, poll with their history.", "to confirm, use --yes")
    assert refused.out == "- nightly\n- poll\n"
    assert len(await _rules(cli)) == 3
    applied = await cli("schedules", "apply", file, "--yes")
    assert applied.out.endswith("\nschedules of acme/pay applied: 2 changes\n")
    assert await _rules(cli) == {"mine": "@every 1h"}


async def test_a_schedule_of_another_origin_is_left_alone(cli: Cli, file: Path) -> None:
    await cli("schedules", "apply", file)
    file.write_text(FILE.replace("acme/pay", "acme/shop"))
    (await cli("schedules", "apply", file)).refused(4, "nightly was added from acme/pay")
    await cli("schedules", "remove", "nightly")
    await cli("schedules", "remove", "poll")
    await cli(
        "schedules",
        "add",
        "nightly",
        "--every",
        "1h",
        *PING[:2],
        "--payload",
        '{"url": "https://e.org"}',
    )
    (await cli("schedules", "apply", file)).refused(4, "nightly was added by a command")


INVALID_FILES: list[tuple[str, str, str]] = [
    ('name = "acme/pay"', "", "name is required"),
    ('name = "acme/pay"', 'name = "x"\ncolor = 1', "unknown key 'color'; allowed: name, sched"),
    ("cron =", "corn =", "schedule nightly: unknown key 'corn'; allowed: cron, every, at"),
    ('cron = "0 2 * * *"', "", "needs one of cron, every, at and when"),
    ('cron = "0 2 * * *"', 'when = "every mday"', "schedule nightly: "),
    ('cron = "0 2 * * *"', 'when = "tomorrow at 9"', "depends on the time of apply"),
    ('cron = "0 2 * * *"', 'when = "every day at 9 UTC"', "names the zone UTC, and zone Eu"),
    ("0 2 * * *", "0 25 * * *", "invalid hour"),
    ("Europe/Berlin", "Europe/Berlyn", "unknown time zone"),
    ("days = 3", 'days = "x"', "days: must be a whole number, not 'x'"),
    ('"all"', '"some"', "misfire must be skip, last, all"),
    ('"queue"', "1", "overlap must be skip, queue, cancel-running"),
    ('jitter = "5m"', 'jitter = "5 parsecs"', "invalid duration"),
    ('jitter = "5m"', 'misfire_limit = "x"', "must be a whole number"),
    ("params = { days = 3 }", "params = 3", "params must be a table"),
    ("[schedules.nightly]", "[schedules.nightly", "invalid TOML"),
    ("[schedules.nightly]", "[[schedules.nightly]]", "must be tables"),
]


async def test_an_invalid_file_changes_nothing(cli: Cli, file: Path) -> None:
    for old, new, problem in INVALID_FILES:
        file.write_text(FILE.replace(old, new, 1))
        (await cli("schedules", "apply", file)).refused(2, problem)
        assert await _rules(cli) == {}


async def test_a_time_that_passed_is_no_change(cli: Cli, file: Path, clock: Clock) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    table = f'[schedules.a]\nat = {at.isoformat()}\ntemplate = "ping"\nparams = {{ days = 1 }}\n'
    file.write_text(f'name = "x"\n{table}')
    applied = await cli("schedules", "apply", file)
    assert applied.out.endswith("\nschedules of x applied: 1 change\n")
    await clock.forward(7200)
    assert (await cli("schedules", "apply", file)).err == "no changes\n"
    file.write_text('name = "x"\n[schedules.b]\nat = 2001-01-01T00:00:00Z\ntemplate = "ping"\n')
    (await cli("schedules", "apply", file)).refused(2, "has passed")
