"""The `cancel` command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.ids import job_name
from draftsman.domain.job import Status
from draftsman.domain.text import humanize
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime


@command("cancel", examples=("draftsman cancel D-142 --reason 'not needed any more'",))
@click.argument("job", type=params.JOB)
@click.option("--reason", type=params.TEXT, help="Reason, recorded in the event history.")
@click.option("--force", is_flag=True, help="Cancel without waiting for the worker.")
@click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")
async def cancel(app: App, job: JobRef, reason: str | None, force: bool, yes: bool) -> None:
    """Cancel a job.

    A running job is asked to stop first. With --force it is canceled immediately, and later writes
    of its worker are rejected.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        if app.out.interactive and not yes:
            await _confirm(rt, number)
        result = await rt.job_control.cancel(number, await rt.actor(), reason, force=force)
    if app.json:
        app.out.document(result)
    elif result.requested:
        name = job_name(number)
        app.out.print(f"{name}: cancellation requested; to wait: draftsman wait {name}")
    else:
        app.out.print(line(styled(job_name(number), "bold"), " canceled"))


async def _confirm(rt: Runtime, number: int) -> None:
    """Ask for confirmation; raises Refused on no."""
    details = await rt.read_model.job(number)
    title = f", {details.ticket_title!r}" if details.ticket_title else ""
    action = "stop" if details.status is Status.RUNNING else "cancel"
    state = humanize(str(details.status))
    prompts.confirm(f"{details.name}{title} is {state}. {action.capitalize()} it?")
