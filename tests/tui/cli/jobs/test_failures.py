"""The same failures for the same word, in each command that lists, counts or changes them."""

from __future__ import annotations

import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


async def _numbers(cli: Cli, *words: str) -> list[int]:
    return sorted(job["number"] for job in (await cli(*words, "--json")).json)


async def test_failed_is_the_status_and_an_open_failure_what_needs_a_person(
    cli: Cli, make: Factory, rt: Runtime, people: People
) -> None:
    denied = (await make.asked(GATE)).number
    await make.decide(denied, False, people.carol)
    failed, dismissed, retried = [await make.failed() for _ in range(3)]
    dead, dismissed_dead, retried_dead = [await make.dead() for _ in range(3)]
    for number in dismissed, dismissed_dead:
        await rt.job_control.dismiss(number, make.owner)
    for number in retried, retried_dead:
        await rt.job_control.retry(number, make.owner)
    for status, all_of_status, open_failure, taken_back in (
        ("failed", [denied, failed, dismissed, retried], failed, dismissed),
        ("dead_letter", [dead, dismissed_dead, retried_dead], dead, dismissed_dead),
    ):
        selected = ("--status", status)
        assert await _numbers(cli, "jobs", *selected) == sorted(all_of_status)
        assert await _numbers(cli, "jobs", "--failures", *selected) == [open_failure]
        for command in "retry", "dismiss":
            assert await _numbers(cli, command, *selected, "--dry-run") == [open_failure], command
        assert await _numbers(cli, "undismiss", *selected, "--dry-run") == [taken_back]
        stats = (await cli("stats", "--json")).json
        assert stats["jobs"][status] == len(all_of_status)
        assert stats["open_failures"][status] == 1
    assert await _numbers(cli, "jobs", "--failures") == [failed, dead]
    assert "2  open failures: draftsman jobs --failures" in (await cli("stats")).out
    listed = await cli("retry", "--status", "failed,dead_letter", "--dry-run")
    assert listed.err.splitlines() == [
        "1 matching job was denied",
        "2 matching jobs were dismissed",
        "2 matching jobs were already retried",
        "2 jobs would be retried",
    ]
    assert (await cli("retry", f"D-{denied}")).code == 0


async def test_dismissals_are_taken_back_in_bulk(cli: Cli, make: Factory, rt: Runtime) -> None:
    first, second = await make.dead(queue="nightly"), await make.dead(tags=("team=pay",))
    await make.dead()
    every = ("undismiss", "--status", "failed,dead_letter")
    none = await cli(*every, "--yes")
    assert none.err.startswith("no failures to undismiss; to list them: draftsman jobs --status")
    assert len((await cli("dismiss", *every[1:], "--yes", "--json")).json) == 3
    assert await _numbers(cli, *every, "--queue", "nightly", "--dry-run") == [first]
    assert await _numbers(cli, *every, "--tag", "team", "--dry-run") == [second]
    assert "Undismiss 3 jobs?" in (await cli(*every)).err
    (row,) = (await cli(*every, "--queue", "nightly", "--yes", "--json")).json
    assert (row["number"], row["dismissal"]) == (first, None)
    assert await _numbers(cli, "jobs", "--failures") == [first]


@pytest.mark.parametrize("command", ["retry", "dismiss", "undismiss"])
async def test_bulk_commands_have_the_same_filters(
    as_: As, make: Factory, people: People, rt: Runtime, command: str
) -> None:
    own = await make.dead(actor=people.anna, queue="nightly", tags=("team=pay",))
    other = await make.dead()
    if command == "undismiss":
        for number in own, other:
            await rt.job_control.dismiss(number, make.owner)
    anna = as_("anna")
    bulk = (command, "--status", Status.DEAD_LETTER, "--dry-run")
    assert await _numbers(anna, *bulk) == [own, other]
    for option in ["--mine"], ["--queue", "nightly"], ["--tag", "team=pay"]:
        assert await _numbers(anna, *bulk, *option) == [own], option


@pytest.mark.parametrize("command", ["retry", "dismiss", "undismiss", "cancel"])
async def test_a_command_without_jobs_names_a_status_that_it_takes(
    cli: Cli, make: Factory, command: str
) -> None:
    refused = await cli(command)
    assert refused.code == 2
    *_, status = refused.err.split()
    assert (await cli(command, "--status", status, "--dry-run", "--yes")).code == 0


async def test_the_details_of_a_job_without_success_end_with_what_to_do(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    dead, canceled, completed = await make.dead(), await make.canceled(), await make.completed()
    for number, step in (
        (dead, f"to retry: draftsman retry D-{dead}; to take it out of attention: "),
        (canceled, f"it never started; to run it: draftsman retry D-{canceled}"),
    ):
        shown = await cli("show", number)
        assert (await cli("why", number, "--json")).json["next_step"].startswith(step)
        text = " ".join(f"{shown.out} {shown.err}".split())
        assert text.count(step) == 1, "the same hint is printed once"
    assert (await cli("show", completed)).err == ""
