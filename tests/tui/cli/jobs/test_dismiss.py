"""The commands `dismiss` and `undismiss`, and the counts that they change."""

from __future__ import annotations

import pytest

from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats, WorkerStats
from draftsman_tui.dashboard.widgets.overview import lines
from tests.tui.cli.cli_runner import Cli
from tests.tui.dashboard.fixtures_data import NOW

DEAD_LETTERS = 20


async def test_a_dismissed_failure_says_who_dismissed_it_and_why(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    number = await make.dead(title="Refund")
    name = f"D-{number}"
    done = await cli("dismiss", name, "--reason", "fixed upstream")
    assert done.out.splitlines() == [
        f"{name} dismissed; to take it back: draftsman undismiss {name}"
    ]
    again = await cli("dismiss", name)
    assert again.out.startswith(f"{name} was already dismissed by root: fixed upstream")
    assert "dismissed  by root: fixed upstream" in (await cli("show", name)).out
    why = await cli("why", name)
    assert "dismissed by root: fixed upstream" in why.out
    assert f"to take it back: draftsman undismiss {name}" in why.out
    assert "dismissed by root: fixed upstream: gone" in (await cli("jobs")).out
    events = (await cli("events", name)).out
    assert "dismissed the failure: fixed upstream" in events
    assert (await cli("jobs", "--failures")).out == ""
    assert (await cli("undismiss", name)).out == f"{name} undismissed\n"
    assert name in (await cli("jobs", "--failures")).out
    refused = await cli("undismiss", name)
    assert (refused.code, refused.err) == (1, f"draftsman: {name} is not dismissed\n")


async def test_open_failures_that_match_are_dismissed(cli: Cli, make: Factory, rt: Runtime) -> None:
    first, second = await make.dead(), await make.dead(type="other")
    failed = await make.failed()
    retried = await make.dead()
    await rt.job_control.retry(retried, make.owner)
    every = ("dismiss", "--status", "failed,dead_letter")
    listed = await cli(*every, "--dry-run", "--json")
    assert [job["number"] for job in listed.json] == [first, second, failed]
    refused = await cli(*every)
    assert (refused.code, "Dismiss 3 jobs?" in refused.err) == (2, True)
    (row,) = (await cli(*every, "--type", "other", "--yes", "--json")).json
    assert (row["number"], row["changed"], row["dismissal"]["reason"]) == (second, True, None)
    assert (await cli(*every, "--yes")).code == 0
    assert (await cli(*every, "--yes")).err.splitlines() == [
        "3 matching jobs were dismissed",
        "1 matching job was already retried",
        "no failures to dismiss; to list them: draftsman jobs --failures",
    ]
    assert await rt.read_model.jobs(failures=True) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("D-1",), "D-1 is completed, not failed; nothing to dismiss"),
        (
            ("--status", "canceled"),
            "a job that is canceled is no failure; choose: dead_letter, failed",
        ),
        ((), "specify either jobs or --status"),
    ],
    ids=["completed", "status", "nothing"],
)
async def test_what_cannot_be_dismissed_is_refused(
    cli: Cli, make: Factory, arguments: tuple[str, ...], text: str
) -> None:
    assert await make.completed() == 1
    refused = await cli("dismiss", *arguments)
    assert refused.code
    assert text in refused.err


async def test_retrying_dead_letters_leaves_nothing_red(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    for _ in range(DEAD_LETTERS):
        await make.dead()

    async def red() -> tuple[int, str, str]:
        failures = await rt.read_model.open_failures()
        counts = await rt.read_model.counts() or {}
        stats = DashboardStats(counts, WorkerStats(), open_failures=failures)
        first_line = lines(stats, NOW, width=200).plain.partition("\n")[0]
        listed = len(await rt.read_model.jobs(failures=True))
        return listed, first_line, (await cli("stats")).out

    before, header, stats = await red()
    assert before == DEAD_LETTERS
    assert f"failures {DEAD_LETTERS}" in header
    assert f"{DEAD_LETTERS}  open failures: draftsman jobs --failures" in stats
    retries = (await cli("retry", "--status", "dead_letter", "--yes", "--json")).json
    for retry in retries:
        await rt.settlement.outcome(await make.running(retry["number"]), Done())
    after, header, stats = await red()
    assert (after, "failures" in header, "--failures" in stats) == (0, False, False)
    assert (await cli("jobs", "--failures")).out == ""
