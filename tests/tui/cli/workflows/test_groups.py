"""Groups of jobs: submit --group, groups, and jobs --group."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.workflows.test_workflows import NOOP, lines


async def test_without_groups_the_list_says_how_to_create_a_group(cli: Cli) -> None:
    done = await cli("groups")
    assert "no groups yet; to create a group: draftsman submit --batch FILE --group" in done.err
    assert (await cli("groups", "--json")).json == []
    (await cli("groups", "show", "g")).refused(3, "there is no group 'g'")
    listed = await cli("jobs", "--group", "g")
    assert (listed.code, listed.out, listed.err) == (0, "", "no group 'g'\n")


async def test_a_batch_is_a_group_that_is_shown_and_extended(cli: Cli, tmp_path: Path) -> None:
    file = lines(tmp_path / "steps.jsonl", {"title": "Build"}, {"title": "Deploy"})
    batch = ("submit", "--unchecked", "--batch", file, "--group", "release", "--sequential")
    jobs = [text.split()[0] for text in (await cli(*batch)).out.splitlines()]
    last = (await cli(*NOOP, "--group", "release")).out.split()[0]
    shown = (await cli("groups", "show", "release")).out
    assert "release  running  0 of 3 succeeded, 3 waiting" in shown
    assert re.search(
        r"^sequential, on failure: stop; created by \S+ (now|\S+ \S+ ago)$", shown, re.M
    )
    assert shown.index(jobs[0]) < shown.index(jobs[1]) < shown.index(last)
    shown = (await cli("show", last)).out
    assert (
        "\nGroup\n  release  0 of 3 succeeded, 3 waiting  sequential, on failure: stop\n" in shown
    )
    group = (await cli("show", last, "--json")).json["group"]
    assert (group["name"], group["progress"]) == ("release", "0 of 3 succeeded, 3 waiting")
    assert f"waits for {jobs[1]} (queued)" in (await cli("why", last)).out
    assert "release" in (await cli("groups")).out
    (data,) = (await cli("groups", "--json")).json
    assert (data["state"], data["total"], data["kind"]) == ("running", 3, "sequential")
    members = (await cli("groups", "show", "release", "--json")).json["jobs"]
    assert [f"D-{member['number']}" for member in members] == [*jobs, last]
    of_group = (await cli("jobs", "--group", "release", "--json")).json
    assert [f"D-{job['number']}" for job in of_group] == [last, *jobs[::-1]]


async def test_a_cancel_asks_first_and_later_jobs_are_skipped(cli: Cli) -> None:
    await cli(*NOOP, "--group", "g", "--parallel")
    refused = await cli("groups", "cancel", "g")
    refused.refused(2, "Cancel 1 unfinished job of the group 'g'?", "to confirm, use --yes")
    done = await cli("groups", "cancel", "g", "--yes", "--reason", "wrong version")
    assert "canceled" in done.out
    shown = (await cli("groups", "show", "g")).out
    assert "g  canceled  0 of 1 succeeded, 1 canceled" in shown
    assert ": wrong version" in shown
    added = await cli(*NOOP, "--group", "g")
    assert "created and skipped: a job that it waits for did not complete, or" in added.out
    run = await cli("run", *NOOP[1:], "--group", "g")
    assert run.code == 1
    assert "created and skipped" in run.err
    (await cli("groups", "cancel", "g")).refused(1, "all jobs of the group 'g' have ended")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parallel"], "--sequential, --parallel and --on-failure require --group"),
        (["--group", "g", "--parallel", "--sequential"], "cannot be combined"),
        (["--group", "g", "--on-failure", "stop"], "requires --sequential or --parallel"),
        (["--group", "a b", "--parallel"], "group"),
        (["--group", "g", "--parallel", "--unique-for", "1h"], "use group or unique, not both"),
    ],
)
async def test_bad_options_are_refused_in_a_line(
    cli: Cli, options: list[str], message: str
) -> None:
    (await cli(*NOOP, *options)).refused(2, message)


async def test_a_group_without_a_kind_has_to_exist(cli: Cli) -> None:
    (await cli(*NOOP, "--group", "g")).refused(
        3, "there is no group 'g'; to create it, use --parallel or --sequential"
    )


async def test_a_retry_of_a_skipped_job_names_the_failed_job(cli: Cli, make: Factory) -> None:
    parent = await make.queued()
    child = await make.queued(after=(parent,))
    await cli("cancel", f"D-{parent}", "--yes")
    done = await cli("retry", f"D-{child}")
    assert f"D-{child} was skipped because of D-{parent}, which its retry" in done.err
    assert f"draftsman retry D-{parent}" in done.err


async def test_a_retry_of_a_job_that_its_group_skipped_names_the_failed_job(
    cli: Cli, make: Factory
) -> None:
    failed = await make.queued(group={"name": "g", "kind": "parallel"})
    skipped = await make.queued(group="g")
    await cli("cancel", f"D-{failed}", "--yes")
    done = await cli("retry", f"D-{skipped}")
    assert f"D-{skipped} was skipped because of D-{failed}, which its retry" in done.err


async def test_a_group_says_what_each_job_waits_for(cli: Cli, make: Factory) -> None:
    first = await make.asked(group={"name": "g", "kind": "sequential"})
    second = await make.queued(group="g")
    shown = (await cli("groups", "show", "g")).out.splitlines()
    listed = (await cli("jobs", "--group", "g")).out.splitlines()
    for table in (shown, listed):
        waits = dict(line.split(maxsplit=1) for line in table if line.startswith("D-"))
        assert waits[f"D-{second}"].endswith(f"{first.name} (waiting for input)")
        assert f"answer {first.name}/1" in waits[first.name]
    assert f"waits for {first.name} (waiting for input)" in (await cli("why", second)).out
