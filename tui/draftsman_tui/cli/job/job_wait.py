"""`wait`, and what `submit --wait` shares with it: following one job to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.job import TERMINAL, WAITING, Job, Status
from draftsman.errors import AnswerTimeout, DraftsmanError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params, times
from draftsman_tui.common.event_text import event_text
from draftsman_tui.common.job_text import status_text
from draftsman_tui.common.output import as_data, line, one_line
from draftsman_tui.common.question_text import describe

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime


@command("wait", examples=("draftsman wait D-142 --timeout 10m && echo completed",))
@click.argument("job", type=params.JOB)
@click.option("--timeout", type=params.DURATION, help="Give up after this: 90s, 10m, 2h.")
async def wait(app: App, job: JobRef, timeout: float | None) -> None:
    """Wait until a job ends.

    Exits with 0 when it completed, with 1 when it ended otherwise or goes on after the timeout,
    and with 5 when nobody answered its question in time.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        await until_end(app, rt, number, timeout)
        await conclude(app, rt, number, timeout)


async def until_end(app: App, rt: Runtime, number: int, timeout: float | None) -> None:
    """Return when the job ended, or the time is over; tells on stderr when it is tried again."""
    try:
        async with asyncio.timeout(timeout):
            async for status in rt.read_model.statuses(number):
                if status is Status.RETRYING:
                    await _tell_next_try(app, rt, number)
    except TimeoutError:
        return


async def _tell_next_try(app: App, rt: Runtime, number: int) -> None:
    """Say when a job that failed is tried again, unless it is by now."""
    why = await rt.read_model.why(number)
    if why.status is Status.RETRYING:
        app.out.info(f"D-{number}: {one_line(why.text)}; {why.then}")


async def narrate(app: App, rt: Runtime, number: int, timeout: float | None) -> None:
    """Tell on stderr what happens to the job, until it ends or the time is over."""
    try:
        async with asyncio.timeout(timeout):
            async for event in rt.read_model.follow(number):
                app.out.print_stderr(event_text(event), cut=True)
                if event.to_status == Status.RETRYING:
                    await _tell_next_try(app, rt, number)
                if event.to_status in WAITING:
                    for question in await rt.questions.open(number):
                        app.out.print_stderr(*await describe(rt, question))
    except TimeoutError:
        return


async def conclude(app: App, rt: Runtime, number: int, timeout: float | None, **more: Any) -> None:
    """Print how the job stands; raises unless it completed."""
    job = await rt.read_model.job(number)
    if app.json:
        app.out.document(as_data(job) | more)
    else:
        app.out.print(line(f"{job.name} ", status_text(job.status, job.error_class)))
    if job.status is not Status.COMPLETED:
        raise await _verdict(rt, job, timeout)


async def _verdict(rt: Runtime, job: Job, timeout: float | None) -> DraftsmanError:
    """Return the error that says why the wait did not end well."""
    after = f" after {times.span(timeout)}" if timeout else ""
    if job.status in WAITING:
        asked = await rt.questions.open(job.number)
        name = asked[0].name if asked else job.name
        verb = "answer" if job.status is Status.WAITING_FOR_INPUT else "approve"
        return AnswerTimeout(f"{name} is open{after}; use: draftsman {verb} {name}")
    if job.status is Status.EXPIRED:
        return AnswerTimeout(
            f"{job.name} expired: nobody answered in time; run it anew: draftsman retry {job.name}"
        )
    if job.status not in TERMINAL:
        return DraftsmanError(
            f"{job.name} is {str(job.status).replace('_', ' ')}{after};"
            f" see: draftsman why {job.name}"
        )
    ends = {Status.CANCELED: "was canceled", Status.DEAD_LETTER: "failed too often"}
    reason = job.last_error or job.cancel_reason
    how = ends.get(job.status, str(job.status))
    return DraftsmanError(f"{job.name} {how}{f': {reason}' if reason else ''}")
