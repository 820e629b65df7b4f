"""`wait`: the outcome of the job is the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from draftsman.domain.job import Status
from draftsman.domain.outcome import Done
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.support.waits import background
from tests.tui.cli.cli_runner import Cli, Terminal


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (Status.FAILED, 1, "failed: no such thing"),
        (Status.DEAD_LETTER, 1, "is a dead letter: gone"),
        (Status.CANCELED, 1, "was canceled"),
        (Status.EXPIRED, 5, "no answer in time"),
    ],
)
async def test_an_unsuccessful_end_has_its_exit_code(
    cli: Cli, make: Factory, status: Status, code: int, message: str
) -> None:
    number = await make.job_in(status)
    done = await cli("wait", number)
    done.refused(code, f"D-{number} ", message)
    assert done.out == f"D-{number} {status.replace('_', ' ')}\n"


async def test_wait_ends_at_the_completion(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()
    async with background(cli("wait", work.name, "--json")) as waiting:
        await rt.settlement.outcome(work, Done({"n": 1}))
        done = await waiting
    assert (done.json["status"], done.json["result"]) == ("completed", {"n": 1})
    assert (await cli("wait", work.name)).out == f"{work.name} completed\n"


async def test_wait_reports_the_status_at_the_timeout(cli: Cli, make: Factory) -> None:
    running, asked = await make.running(), await make.asked()
    done = await cli("wait", running.name, "--timeout", "0.2s")
    done.refused(1, f"{running.name} is still running after 0.2 s; see: draftsman why")
    done = await cli("wait", asked.name, "--timeout", "0.2s")
    done.refused(
        5, f"{asked.name}/1 is still open after 0.2 s; run: draftsman answer {asked.name}/1"
    )


async def test_wait_reports_the_time_of_the_next_attempt(
    make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    number = await make.retrying(overrides={"base_delay": 900, "max_delay": 900})
    await make.set_due(number, 3600)
    submitted = terminal("submit", "--type", "noop", "--queue", "q", "--wait")
    submitted.expect("D-2 created")
    failure = Failure("busy\nand more", http_status=429, retry_after=7200)
    await rt.settlement.failure(await make.running(2), failure)
    waiting = terminal("wait", number)
    waiting.expect(f"D-{number}: run 1 failed: busy; next retry in 60 min")
    waiting.expect("(retry 1 of 3)")
    submitted.expect("D-2: run 1 failed: busy; next retry in 2.0 h")
    for job, expected in ((number, waiting), (2, submitted)):
        await make.due(job)
        await rt.settlement.outcome(await make.running(job), Done({}))
        assert expected.end() == 0


async def test_wait_continues_after_an_answer_in_another_channel(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    async with background(cli("wait", work.name, "--timeout", "20s")) as waiting:
        await make.answer(work.number, "red")
        await rt.settlement.outcome(await make.running(work.number), Done({}))
        assert (await asyncio.wait_for(waiting, 10)).code == 0
