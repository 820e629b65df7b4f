"""The `cancel` and `retry` commands and their prompts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.outcome import Done
from draftsman.runtime import Runtime
from tests.factories import Factory
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
    canceled, forced = await make.running(), await make.running()
    done = await cli("cancel", canceled.name)
    assert (
        done.out
        == f"{canceled.name}: cancellation requested; to wait: draftsman wait {canceled.name}\n"
    )
    assert (await rt.read_model.job(canceled.number)).status is Status.RUNNING
    document = (await cli("cancel", forced.name, "--force", "--json")).json
    assert document == {"number": forced.number, "status": "canceled", "requested": False}


@pytest.mark.parametrize("status", sorted(TERMINAL))
async def test_a_cancel_after_the_end_is_reported(cli: Cli, make: Factory, status: Status) -> None:
    number = await make.job_in(status)
    (await cli("cancel", number)).refused(1, f"D-{number} is already {status}")


async def test_an_unauthorized_cancel_names_the_permitted_people(as_: As, make: Factory) -> None:
    number = await make.queued()
    (await as_("ben")("cancel", number)).refused(1, "may not cancel", "olga")


async def test_a_cancel_is_confirmed_on_a_terminal(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.running(title="Pay")
    screen = terminal("cancel", work.name)
    screen.expect(f"{work.name}, 'Pay' is running. Stop it? [y/N]")
    screen.type("\n")
    assert screen.end() == 1
    assert (await rt.read_model.job(work.number)).cancel_requested_at is None
    screen = terminal("cancel", work.name, "--yes")
    assert screen.end() == 0
    assert (await rt.read_model.job(work.number)).cancel_requested_at is not None


async def test_several_jobs_are_retried_once_each(cli: Cli, make: Factory, rt: Runtime) -> None:
    failed, dead = await make.failed(), await make.dead()
    done = await cli("retry", failed, dead)
    assert done.code == 0
    retries = [line.split()[0] for line in done.out.splitlines()]
    assert done.out.splitlines()[0] == f"{retries[0]} created: retry of D-{failed}"
    repeated = (await cli("retry", failed, dead, "--json")).json
    assert [(entry["number"], entry["outcome"]) for entry in repeated] == [
        (int(name[2:]), "deduplicated") for name in retries
    ]
    assert (await rt.read_model.job(repeated[1]["number"])).retry_of == dead


async def test_a_job_that_cannot_be_retried_does_not_block_the_others(
    cli: Cli, make: Factory
) -> None:
    running, failed = await make.running(), await make.failed()
    completed = await make.completed()
    done = await cli("retry", running.name, "D-99", failed, completed)
    assert done.code == 1
    assert done.out == f"D-4 created: retry of D-{failed}\n"
    for message in ("is running, not finished", "there is no job D-99", "use --again"):
        assert message in done.err
    assert done.err.count("\n") == 3


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
