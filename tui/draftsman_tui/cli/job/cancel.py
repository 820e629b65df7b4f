"""`cancel`: a job ends because somebody says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.job import Status
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime


@command("cancel", examples=("draftsman cancel D-142 --reason 'not needed any more'",))
@click.argument("job", type=params.JOB)
@click.option("--reason", type=params.TEXT, help="Kept in the trail.")
@click.option("--force", is_flag=True, help="Do not wait for its worker.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
async def cancel(app: App, job: JobRef, reason: str | None, force: bool, yes: bool) -> None:
    """End a job.

    One that is running is told to stop and ends as canceled; --force ends it at once, and what its
    worker still writes is refused.
    """
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        if app.out.interactive and not yes:
            await _confirm(rt, number)
        done = await rt.job_control.cancel(number, await rt.actor(), reason, force=force)
    if app.json:
        app.out.document(done)
    elif done.requested:
        app.out.print(f"D-{number} is told to stop; see: draftsman wait D-{number}")
    else:
        app.out.print(line(styled(f"D-{number}", "bold"), " canceled"))


async def _confirm(rt: Runtime, number: int) -> None:
    """Ask whether it is this job; raises Refused if not."""
    found = await rt.read_model.job(number)
    title = f", {found.ticket_title!r}" if found.ticket_title else ""
    what = "stop it" if found.status is Status.RUNNING else "cancel it"
    state = str(found.status).replace("_", " ")
    prompts.confirm(f"{found.name}{title} is {state}; {what}?")
