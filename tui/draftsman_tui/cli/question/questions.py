"""`questions` and `extend`: the inbox of what waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params, times
from draftsman_tui.common.output import line, styled
from draftsman_tui.common.question_text import describe

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef


@command("questions", examples=("draftsman questions", "draftsman questions D-142 --json"))
@click.argument("job", type=params.JOB, required=False)
async def questions(app: App, job: JobRef | None) -> None:
    """List what waits for a person.

    What expires soonest comes first.
    """
    async with app.runtime(read_only=True) as rt:
        number = None if job is None else await number_of(rt, job)
        found = await rt.questions.open(number)
        if app.json:
            app.out.document(found)
            return
        for place, question in enumerate(found):
            if place:
                app.out.print("")
            app.out.print(*await describe(rt, question))
        if not found and number is not None:
            app.out.info(f"D-{number} waits for nobody; see: draftsman why D-{number}")
        elif not found:
            app.out.info("nothing waits for a person")


@command("extend", examples=("draftsman extend D-142/1 2h", "draftsman extend D-142/1 never"))
@click.argument("question", type=params.QUESTION)
@click.argument("duration", metavar="DURATION|never", type=params.EXTENSION)
async def extend(app: App, question: tuple[JobRef, int | None], duration: float) -> None:
    """Give a question more time.

    So much on top of what it has left, or for ever.
    """
    from draftsman_tui.cli.question.answers import resolve_question

    seconds = None if duration == float("inf") else duration
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "extend")
        until = await rt.questions.extend(job, ordinal, seconds, await rt.actor())
    if app.json:
        app.out.document({"job": job, "ordinal": ordinal, "expires_at": until})
    else:
        when = f"expires {times.left(until)}, at {times.clock(until)}" if until else "never expires"
        app.out.print(line(styled(f"D-{job}/{ordinal}", "bold"), f" {when}"))
