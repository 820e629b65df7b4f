"""`schedules`: jobs that are submitted at their times."""

from __future__ import annotations

import json
import re

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli

PING = ("--type", "http_request", "--payload", '{"url": "https://example.org/"}')


async def test_a_schedule_is_added_shown_paused_run_and_removed(cli: Cli) -> None:
    assert "no schedules; to add a schedule" in (await cli("schedules")).err
    assert "no occurrence was due yet" in (await cli("schedules", "history")).err
    added = await cli(
        *("schedules", "add", "nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin"),
        *("--jitter", "5m", "--misfire", "all", "--overlap", "queue", *PING),
    )
    assert added.out.startswith("schedule nightly added: 30 2 * * *; next: ")
    upcoming = (await cli("schedules", "next", "nightly", "--count", "2")).out.splitlines()
    assert len(upcoming) == 2
    assert all(re.search(r" 02:30 \+0[12]00 Europe/Berlin$", line) for line in upcoming)
    [times, _] = json.loads(
        (await cli("schedules", "next", "nightly", "--count", "2", "--json")).out
    )
    assert times.keys() == {"due_at", "fire_at"}
    assert (await cli("schedules", "pause", "nightly", "--reason", "freeze")).out
    (await cli("schedules", "pause", "nightly")).refused(1, "is paused already")
    hint = "; to resume: draftsman schedules resume nightly\n"
    assert (await cli("schedules", "next", "nightly")).err.endswith(hint)
    shown = await cli("schedules", "show", "nightly")
    for part in ("all, at most 10", "up to 5m", "queue", "freeze", "http_request"):
        assert part in shown.out
    assert "paused" in (await cli("schedules", "list")).out
    assert (await cli("schedules", "resume", "nightly")).out.startswith(
        "schedule nightly resumed; next: "
    )
    assert (await cli("schedules", "run", "nightly")).out == "D-1 created\n"
    assert "D-1" in (await cli("schedules", "history", "nightly")).out
    assert ": run by root  D-1  " in (await cli("schedules", "list")).out.splitlines()[1]
    [fire] = json.loads((await cli("schedules", "history", "--json")).out)
    assert (fire["schedule"], fire["job"], fire["status"]) == ("nightly", 1, "fired")
    [listed] = json.loads((await cli("schedules", "list", "--json")).out)
    assert (listed["name"], listed["misfire"]) == ("nightly", "all")
    (await cli("schedules", "add", "nightly", "--every", "2h", *PING)).refused(
        4, "to change it, use --replace"
    )
    replaced = await cli("schedules", "add", "nightly", "--every", "2h", "--replace", *PING)
    assert "@every 2h" in replaced.out
    assert "schedule nightly removed" in (await cli("schedules", "remove", "nightly")).out
    (await cli("schedules", "show", "nightly")).refused(3, "unknown schedule 'nightly'")


async def test_without_repositories_the_command_that_adds_them_is_named(cli: Cli) -> None:
    add = ("schedules", "add", "tidy", "--every", "1d", "Tidy up")
    (await cli(*add)).refused(2, "no repositories yet", "draftsman repos add")


async def test_a_rule_in_english(cli: Cli) -> None:
    add = ("schedules", "add", "tidy", *PING, "--when")
    assert (await cli(*add, "every weekday at 9 in Asia/Tokyo")).out.startswith(
        "schedule tidy added: 0 9 * * mon-fri; next: "
    )
    shown = json.loads((await cli("schedules", "show", "tidy", "--json")).out)
    assert (shown["rule"], shown["timezone"]) == ("0 9 * * mon-fri", "Asia/Tokyo")
    added = await cli(*add, "tomorrow at 14:00", "--zone", "Europe/Berlin", "--replace")
    assert " 14:00 +0" in added.out
    for text, problem in (
        ("every weekend at 9", "not 'weekend'; examples: every weekday at 9, every 90m"),
        ("every day at 9 Look", "not understood: 'Look'"),
    ):
        (await cli(*add, text)).refused(2, problem)
    both = await cli(*add, "every day at 9 UTC", "--zone", "Asia/Tokyo")
    both.refused(2, "--when names the zone UTC, and --zone Asia/Tokyo; use one")
    (await cli(*add, "every 2h", "--every", "2h")).refused(2, "one of --cron, --every, --at and")


async def test_a_job_names_its_occurrence(cli: Cli, rt: Runtime, clock: Clock) -> None:
    await cli("schedules", "add", "hourly", "--every", "1h", "--zone", "Asia/Kathmandu", *PING)
    upcoming = (await cli("schedules", "next", "hourly", "--count", "1")).out
    await clock.forward(3601)
    [schedule] = await rt.schedules.all()
    known = {**rt.policy.people}
    rt.policy.people = {**known, schedule.created_by: known["anna"]}
    assert await rt.sweeps.run("schedules", LeaderTerm()) == 1
    due = upcoming.strip()
    assert due.endswith(" +0545 Asia/Kathmandu")
    assert f"schedule hourly · due {due}" in " ".join((await cli("show", "D-1")).out.split())
    history = (await cli("schedules", "history")).out.splitlines()
    assert history[0].split() == ["SCHEDULE", "DUE", "ZONE", "OUTCOME", "JOB", "REASON"]
    assert " ".join(history[1].split()) == f"hourly {due} fired D-1"
    assert json.loads((await cli("show", "D-1", "--json")).out)["occurrence"]["job"] == 1


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("--every", "1h", "--cron", "@daily", *PING), "one of --cron, --every, --at and --when"),
    (PING, "one of --cron, --every, --at and --when"),
    (("--every", "x", *PING), "invalid interval"),
    (("--cron", "* * *", *PING), "has 3 fields, not 5"),
    (("--at", "soon", *PING), "invalid time 'soon'"),
    (("--at", "2001-01-01T00:00", *PING), "has passed"),
    (("--every", "1h", "--zone", "Mars", *PING), "unknown time zone 'Mars'"),
    (("--every", "1h", "--template", "x", *PING), "cannot be combined with payload, type"),
    (("--every", "1h", "--param", "a=b", *PING), "--param requires --template"),
    (("--every", "1h", "--jitter", "2h", *PING), "the jitter must be shorter"),
    (("--every", "1h", "--misfire", "some", *PING), "misfire"),
    (("--every", "1h", "--override", "n=1", *PING), "unknown override n; known: answers, "),
]


async def test_bad_input_is_refused_in_one_line(cli: Cli) -> None:
    for arguments, problem in BAD_INPUT:
        refused = (await cli("schedules", "add", "x", *arguments)).refused(2, problem)
        assert "--unchecked" not in refused, "submit alone has it"


async def test_a_time_without_offset_is_in_the_zone(cli: Cli) -> None:
    at = ("--at", "2199-07-01T18:00", "--zone", "Asia/Kathmandu")
    added = await cli("schedules", "add", "launch", *at, *PING)
    assert "@at 2199-07-01T12:15:00Z" in added.out
    assert len((await cli("schedules", "next", "launch")).out.splitlines()) == 1
