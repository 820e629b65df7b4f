"""`cancel` and `retry`: what people do to jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.job import Status
from draftsman.errors import DraftsmanError
from draftsman_tui.cli import asking, params
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.output import line, words

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime
    from draftsman.services.intake import Submitted


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
        done = await rt.operate.cancel(number, await rt.actor(), reason, force=force)
    if app.json:
        app.out.document(done)
    elif done.requested:
        app.out.print(f"D-{number} is told to stop; see: draftsman wait D-{number}")
    else:
        app.out.print(line(words(f"D-{number}", "bold"), " canceled"))


@command(
    "retry",
    examples=(
        "draftsman retry D-142",
        "draftsman retry D-140 D-141 --fresh",
        "draftsman retry D-142 --with-answer",
    ),
)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, type=params.JOB)
@click.option("--fresh", is_flag=True, help="From the start: without the last checkpoint.")
@click.option("--again", is_flag=True, help="Also where it completed.")
@click.option("--with-answer", is_flag=True, help="With the answer that came too late for it.")
async def retry(app: App, jobs: tuple[JobRef, ...], **options: bool) -> None:
    """Run finished jobs anew.

    Each becomes a new job that carries on from the last checkpoint and asks its
    questions again. A second retry of the same job finds the first one's.
    """
    made: list[Submitted] = []
    errors: list[DraftsmanError] = []
    async with app.runtime() as rt:
        actor = await rt.actor()
        for job in jobs:
            try:
                made.append(await _retry(app, rt, job, actor, options))
            except DraftsmanError as error:
                if error.exit_code == 6:
                    raise
                errors.append(error)
    if app.json:
        app.out.document(made)
    for earlier in errors[:-1]:
        app.out.say(f"draftsman: {earlier}")
    if errors:
        raise errors[-1]


async def _retry(
    app: App, rt: Runtime, job: JobRef, actor: Actor, options: dict[str, bool]
) -> Submitted:
    number = await number_of(rt, job)
    new = await rt.operate.retry(number, actor, **options)
    if not app.json:
        app.out.print(line(words(new.name, "bold"), f" {new.how}: D-{number} anew"))
    return new


async def _confirm(rt: Runtime, number: int) -> None:
    """Ask whether it is this job; raises Refused if not."""
    found = await rt.inspect.job(number)
    title = f", {found.ticket_title!r}" if found.ticket_title else ""
    what = "stop it" if found.status is Status.RUNNING else "cancel it"
    state = str(found.status).replace("_", " ")
    asking.confirm(f"{found.name}{title} is {state}; {what}?")
