"""The `cancel` and `retry` commands and their prompts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As


async def test_a_waiting_job_ends_at_once_with_the_reason(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    number = await make.queued()
    done = await cli("cancel", number, "--reason", "not needed")
    assert (done.code, done.out, done.err) == (0, f"D-{number} canceled\n", "")
    job = await rt.read_model.job(number)
    assert (job.status, job.cancel_reason) == (Status.CANCELED, "not needed")
    assert job.cancel_requested_by == f"cli:{(await rt.actor()).id}"


async def test_a_running_job_is_canceled_normally_or_by_force(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    canceled = await make.running()
    forced = await make.running()
    done = await cli("cancel", canceled.name)
    assert done.out == f"{canceled.name} asked to stop; to wait: draftsman wait {canceled.name}\n"
    assert (await rt.read_model.job(canceled.number)).status is Status.RUNNING
    document = (await cli("cancel", forced.name, "--force", "--json")).json
    assert document == {"number": forced.number, "status": "canceled", "requested": False}


@pytest.mark.parametrize("status", sorted(TERMINAL))
async def test_a_cancel_after_the_end_is_reported(cli: Cli, make: Factory, status: Status) -> None:
    number = await make.job_in(status)
    ended = f"D-{number} is already {status.replace('_', ' ')}; nothing to cancel"
    (await cli("cancel", number)).refused(1, ended)


async def test_an_unauthorized_cancel_names_the_permitted_people(as_: As, make: Factory) -> None:
    number = await make.queued()
    (await as_("ben")("cancel", number)).refused(1, "may not cancel", "olga")


async def test_a_cancel_is_confirmed_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.running(title="Pay")
    screen = terminal("cancel", work.name)
    screen.expect(f"Cancel {work.name}? Pay: running. Work so far is kept. [y/N]")
    screen.type("\n")
    assert screen.end() == 1
    assert (await rt.read_model.job(work.number)).cancel_requested_at is None
    screen = terminal("cancel", work.name, "--yes")
    assert screen.end() == 0
    assert (await rt.read_model.job(work.number)).cancel_requested_at is not None


async def test_several_jobs_are_retried_once_each(cli: Cli, make: Factory, rt: Runtime) -> None:
    failed = await make.failed()
    dead = await make.dead()
    done = await cli("retry", failed, dead)
    assert done.code == 0
    retries = [line.split()[-1] for line in done.out.splitlines()]
    assert done.out.splitlines()[0] == f"D-{failed} retried as {retries[0]}"
    repeated = (await cli("retry", failed, dead, "--json")).json
    assert [(entry["number"], entry["outcome"]) for entry in repeated] == [
        (int(name[2:]), "deduplicated") for name in retries
    ]
    assert (await rt.read_model.job(repeated[1]["number"])).retry_of == dead


async def test_a_job_that_cannot_be_retried_does_not_block_the_others(
    cli: Cli, make: Factory
) -> None:
    running = await make.running()
    failed = await make.failed()
    completed = await make.completed()
    done = await cli("retry", running.name, "D-99", failed, completed)
    assert done.code == 1
    assert done.out == f"D-{failed} retried as D-4\n"
    for message in ("is running, not finished", "there is no job D-99", "use --again"):
        assert message in done.err
    assert done.err.splitlines()[-1] == "draftsman: could not retry 3 of 4 jobs"
    assert done.err.count("\n") == 4


async def test_a_completed_job_is_retried_only_with_its_option(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {"n": 1})
    await rt.settlement.outcome(work, Done({}))
    (await cli("retry", work.name)).refused(1, "use --again")
    retries = (await cli("retry", work.name, "--again", "--fresh", "--json")).json
    assert await rt.checkpoints.latest(retries[0]["number"]) == (None, None)


async def test_a_retry_without_a_late_answer_is_refused(cli: Cli, make: Factory) -> None:
    (await cli("retry", await make.failed(), "--with-answer")).refused(1, "has no late answer")
    (await cli("retry")).refused(2, "specify either jobs or --status")


async def test_several_jobs_are_canceled_and_each_error_is_reported(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    first = await make.queued()
    second = await make.queued()
    ended = await make.completed()
    done = await cli("cancel", first, ended, second, "--reason", "moved")
    assert (done.code, done.out) == (1, f"D-{first} canceled\nD-{second} canceled\n")
    assert f"D-{ended} is already completed" in done.err
    assert "could not cancel 1 of 3 jobs" in done.err
    assert (await rt.read_model.job(second)).cancel_reason == "moved"
    third = await make.queued()
    fourth = await make.queued()
    document = (await cli("cancel", third, fourth, "--json")).json
    assert [(job["number"], job["status"]) for job in document] == [
        (third, "canceled"),
        (fourth, "canceled"),
    ]


async def test_matching_jobs_are_canceled_after_a_dry_run(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    nightly = [await make.queued(tags=("nightly",)) for _ in range(3)]
    asked = await make.asked(tags=("nightly",))
    others = [await make.queued(tags=("team=pay",)), (await make.running(tags=("nightly",))).number]
    options = ("cancel", "--status", "queued,waiting", "--tag", "nightly")
    listed = (await cli(*options, "--dry-run", "--json")).json
    assert [job["number"] for job in listed] == [*nightly, asked.number]
    done = await cli(*options, "--dry-run")
    assert "4 jobs would be canceled" in done.err
    (await cli(*options)).refused(
        2, "Cancel 4 jobs? D-1, D-2, D-3, D-4: 3 queued, 1 waiting for input."
    )
    assert (await rt.read_model.job(nightly[0])).status is Status.QUEUED
    done = await cli(*options, "--yes")
    assert done.out.splitlines() == [f"D-{number} canceled" for number in (*nightly, asked.number)]
    assert {(await rt.read_model.job(number)).status for number in others} == {
        Status.QUEUED,
        Status.RUNNING,
    }
    assert "no jobs match the filters" in (await cli(*options, "--yes")).err
    assert (await cli(*options, "--yes", "--json")).json == []


async def test_all_matching_jobs_are_canceled_beyond_a_page(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman_tui.cli.jobs.control.PAGE", 2)
    monkeypatch.setattr("draftsman.jobs.details.service.read_model.SCAN_LIMIT", 3)
    numbers = [await make.queued(tags=("x",) if n in {0, 6, 7} else ()) for n in range(8)]
    done = await cli("cancel", "--status", "queued", "--tag", "x", "--yes", "--json")
    assert [job["number"] for job in done.json] == [numbers[0], *numbers[6:]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "specify either jobs or --status"),
        (("D-1", "--status", "queued"), "specify either jobs or --status"),
        (("--tag", "x"), "requires --status"),
        (("D-1", "--dry-run"), "requires --status"),
        (
            ("--status", "completed"),
            "that is completed cannot be canceled; choose: scheduled",
        ),
    ],
)
async def test_an_invalid_selection_of_jobs_to_cancel_is_refused(
    cli: Cli, arguments: tuple[str, ...], message: str
) -> None:
    (await cli("cancel", *arguments)).refused(2, message)


async def test_canceling_several_jobs_is_confirmed_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    numbers = [await make.queued() for _ in range(2)]
    screen = terminal("cancel", *(f"D-{number}" for number in numbers))
    screen.expect(
        f"Cancel 2 jobs? D-{numbers[0]}, D-{numbers[1]}: 2 queued. Work so far is kept. [y/N]"
    )
    screen.type("\n")
    assert screen.end() == 1
    assert (await rt.read_model.job(numbers[0])).status is Status.QUEUED
