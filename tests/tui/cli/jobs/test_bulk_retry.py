"""The `retry --status` command: confirmation, progress and repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from draftsman.errors import DatabaseUnreachable, Failure
from draftsman.jobs.control.service.control import JobControl
from draftsman.jobs.details.service import finished_jobs
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As

ALL = ("retry", "--status", "dead_letter", "--yes")


async def test_all_dead_letters_are_retried_once(cli: Cli, make: Factory, rt: Runtime) -> None:
    dead = [await make.dead(title=f"n{n}") for n in range(3)]
    other_jobs = [await make.failed(), await make.completed(), await make.queued()]
    done = await cli(*ALL)
    first = other_jobs[-1] + 1
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"D-{number} retried as D-{first + place}" for place, number in enumerate(dead)
    ]
    repeated = await cli(*ALL)
    assert (repeated.code, repeated.out) == (0, "")
    assert repeated.err.splitlines() == [
        "3 matching jobs were already retried",
        "no jobs to retry; to list dead letters: draftsman jobs --status dead_letter",
    ]
    assert (await cli(*ALL, "--json")).json == []
    assert len(await rt.read_model.jobs()) == 9
    assert [(await rt.read_model.job(first + n)).retry_of for n in range(3)] == dead


async def test_a_retry_that_is_a_dead_letter_is_retried_itself(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    first = await make.dead()
    second = (await rt.job_control.retry(first, make.owner)).number
    await rt.settlement.failure(await make.running(second), Failure("gone"))
    [retry] = (await cli(*ALL, "--json")).json
    assert (retry["retry_of"], retry["outcome"], retry["error"]) == (second, "created", None)
    assert (await rt.read_model.job(retry["number"])).chain_length == 2
    repeated = await cli(*ALL)
    assert repeated.err.startswith("2 matching jobs were already retried\nno jobs to retry")


async def test_filters_select_finished_jobs(
    cli: Cli, make: Factory, rt: Runtime, clock: Clock
) -> None:
    old = await make.dead()
    await clock.forward(7200)
    typed = await make.dead(type="other")
    agent = await make.dead(agent="tidy")
    repo = await make.dead(repo="https://host/acme/pay")
    failed = await make.failed()

    async def listed(*arguments: object) -> list[int]:
        matching = (await cli("retry", "--status", *arguments, "--dry-run", "--json")).json
        return [job["number"] for job in matching]

    assert await listed("dead_letter") == [old, typed, agent, repo]
    assert await listed("dead_letter", "--since", "1h") == [typed, agent, repo]
    assert await listed("dead_letter", "--type", "other") == [typed]
    assert await listed("dead_letter", "--agent", "tidy") == [agent]
    assert await listed("dead_letter", "--repo", "pay") == [repo]
    assert await listed("dead_letter", "--repo", "acme/pay") == [repo]
    assert await listed("failed,dead_letter") == [old, typed, agent, repo, failed]
    assert await listed("canceled") == []
    done = await cli("retry", "--status", "failed,dead_letter", "--dry-run")
    assert done.err == "5 jobs would be retried\n"
    assert "no such thing" in done.out
    assert len(await rt.read_model.jobs()) == 5


async def test_a_refused_retry_is_reported_and_blocks_no_other(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    busy = await make.dead(subject_key="card:1")
    live = await make.queued(subject_key="card:1")
    other = await make.dead()
    done = await cli(*ALL)
    assert (done.code, done.out) == (1, f"D-{other} retried as D-{other + 1}\n")
    assert done.err.splitlines() == [
        (
            f"draftsman: D-{busy}: D-{live} is active for the same subject;"
            " cancel it first, or let it finish"
        ),
        "draftsman: could not retry 1 of 2 jobs",
    ]
    done = await cli(*ALL, "--json")
    assert done.code == 1
    assert '"outcome": "failed"' in done.out
    assert f"D-{live} is active" in done.out


async def test_an_interrupted_retry_reports_the_rest_and_can_be_repeated(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = [await make.dead() for _ in range(3)]
    retry = JobControl.retry

    async def until_it_breaks(
        self: JobControl, number: int, *rest: Any, **options: Any
    ) -> SubmittedJob:
        if number == dead[1]:
            raise DatabaseUnreachable("gone")
        return await retry(self, number, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(JobControl, "retry", until_it_breaks)
        done = await cli(*ALL)
    assert done.out == f"D-{dead[0]} retried as D-{dead[-1] + 1}\n"
    assert done.err.startswith(
        "interrupted: 2 of 3 jobs left; run the command again to continue\ndraftsman: "
    )
    done = await cli(*ALL)
    assert done.err == "1 matching job was already retried\n"
    assert len(done.out.splitlines()) == 2


async def test_an_unauthorized_retry_is_reported_for_each_job(
    as_: As, make: Factory, people: People
) -> None:
    own = await make.dead(actor=people.anna)
    other = await make.dead()
    done = await as_("anna")(*ALL)
    assert (done.code, done.out) == (1, f"D-{own} retried as D-{other + 1}\n")
    assert f"D-{other}: " in done.err
    assert "may not retry" in done.err


async def test_a_bulk_retry_is_confirmed_with_its_count(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    await make.dead()
    await make.failed()
    screen = terminal("retry", "--status", "dead_letter,failed")
    screen.expect("Retry 2 jobs? D-1, D-2: 1 dead letter, 1 failed. Continues as a new job")
    screen.type("\n")
    assert screen.end() == 1
    assert len(await rt.read_model.jobs()) == 2
    screen = terminal("retry", "--status", "dead_letter,failed")
    screen.expect("[y/N]")
    screen.type("y\n")
    assert screen.end() == 0
    assert len(await rt.read_model.jobs()) == 4


async def test_a_bulk_retry_without_a_terminal_requires_yes(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    await make.dead()
    (await cli("retry", "--status", "dead_letter")).refused(
        2, "Not a terminal: to confirm, use --yes (or --dry-run to preview)"
    )
    assert len(await rt.read_model.jobs()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--type", "x"], "--type requires --status"),
        (["D-1", "--since", "2h"], "--since requires --status"),
        (["--dry-run", "D-1"], "--dry-run requires --status"),
        (["D-1", "--status", "failed"], "specify either jobs or --status"),
        (
            ["--status", "running"],
            "only finished jobs can be retried, not running; choose: canceled",
        ),
        (["--status", "lost"], "unknown status 'lost'; available: waiting"),
        (["--status", "expired", "--with-answer"], "--with-answer cannot be combined"),
    ],
)
async def test_an_invalid_filter_is_refused(cli: Cli, arguments: list[str], message: str) -> None:
    (await cli("retry", *arguments)).refused(2, message)


async def test_completed_jobs_are_retried_only_on_request(cli: Cli, make: Factory) -> None:
    number = await make.completed()
    done = await cli("retry", "--status", "completed", "--yes")
    assert done.code == 1
    assert f"D-{number} completed; to run it again use --again" in done.err
    assert (await cli("retry", "--status", "completed", "--yes", "--again")).code == 0


async def test_pages_end_with_the_last_job(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished_jobs, "PAGE", 2)
    dead = [await make.dead() for _ in range(4)]
    matching = await rt.finished_jobs.matching(
        [Status.DEAD_LETTER, Status.FAILED, Status.DEAD_LETTER]
    )
    assert [job.number for job in matching] == dead
