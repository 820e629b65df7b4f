"""The `pause` and `resume` commands: a job that no worker continues meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.ids import job_name
from draftsman.jobs.job import WAITING, Status
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef


@command("pause", examples=("draftsman pause D-142 --reason 'the API is down until noon'",))
@click.argument("job", type=params.JOB)
@click.option("--reason", type=params.TEXT, required=True, help="Reason, which `why` shows.")
async def pause(app: App, job: JobRef, reason: str) -> None:
    """Pause a job.

    A running job is parked at its checkpoint, and its slot is free. A waiting job still takes
    answers, messages and a cancel, and no worker claims it until draftsman resume.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        result = await rt.job_control.pause(number, await rt.actor(), reason)
    if app.json:
        app.out.document(result)
        return
    running = "; its worker parks it" if result.status is Status.RUNNING else ""
    name = job_name(number)
    app.out.print(f"{name} paused{running}; to continue it: draftsman resume {name}")


@command("resume", examples=("draftsman resume D-142",))
@click.argument("job", type=params.JOB)
async def resume(app: App, job: JobRef) -> None:
    """Continue a paused job.

    It continues from its checkpoint when a worker claims it, or after the answer that it waits for.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        result = await rt.job_control.resume(number, await rt.actor())
    if app.json:
        app.out.document(result)
        return
    waits = "; it waits for an answer" if result.status in WAITING else ""
    app.out.print(f"{job_name(number)} resumed{waits}")
