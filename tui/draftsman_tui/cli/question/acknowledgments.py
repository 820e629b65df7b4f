"""The commands `ack`, `snooze` and `delegate`: no reminders of a question for some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.ids import question_name
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.question.answers import resolve_question
from draftsman_tui.common import params, times
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef


@command("ack", examples=("draftsman ack D-142/1", "draftsman ack D-142/1 --for 3h"))
@click.argument("question", type=params.QUESTION)
@click.option(
    "--for",
    "seconds",
    type=params.REMINDER_DELAY,
    default="1h",
    show_default=True,
    help="How long reminders wait; at most 1d.",
)
async def ack(app: App, question: tuple[JobRef, int | None], seconds: float) -> None:
    """Acknowledge a question: you work on the answer.

    Others are notified once, and all reminders and steps of the ladder wait until then. The
    question stays open for everyone, and its deadline stays. While the
    acknowledgment of another person holds, yours is refused.
    """
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "ack")
        held = await rt.acknowledgments.acknowledge(job, ordinal, await rt.actor(), seconds)
    if app.json:
        document = {"job": job, "ordinal": ordinal, "person": held.person}
        app.out.document(document | {"until": held.expires_at})
    else:
        until = f" acknowledged until {times.clock(held.expires_at)}; no reminders until then"
        app.out.print(line(styled(question_name(job, ordinal), "bold"), until))


@command("snooze", examples=("draftsman snooze D-142/1 2h",))
@click.argument("question", type=params.QUESTION)
@click.argument("duration", type=params.REMINDER_DELAY)
async def snooze(app: App, question: tuple[JobRef, int | None], duration: float) -> None:
    """Pause your own reminders of a question.

    DURATION is at most 1d. Others are reminded as before, and so is a channel that they read.
    """
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "snooze")
        until = await rt.acknowledgments.snooze(job, ordinal, await rt.actor(), duration)
    if app.json:
        app.out.document({"job": job, "ordinal": ordinal, "until": until})
    else:
        text = f" no reminders for you until {times.clock(until)}"
        app.out.print(line(styled(question_name(job, ordinal), "bold"), text))


@command(
    "delegate",
    examples=(
        "draftsman delegate D-142/1 --to bob",
        "draftsman delegate D-142/1 --to bob --for 4h",
    ),
)
@click.argument("question", type=params.QUESTION)
@click.option("--to", "person", type=params.TEXT, required=True, help="Person who may answer it.")
@click.option(
    "--for",
    "seconds",
    type=params.REMINDER_DELAY,
    default="1h",
    show_default=True,
    help="How long others are not notified; at most 1d.",
)
async def delegate(
    app: App, question: tuple[JobRef, int | None], person: str, seconds: float
) -> None:
    """Ask another person to answer a question.

    The person is notified, and the targets of the job get a notice. Reminders and the steps of
    the ladder wait until then. The question stays open for everyone who may answer it.
    """
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "delegate")
        until = await rt.acknowledgments.delegate(job, ordinal, await rt.actor(), person, seconds)
    if app.json:
        app.out.document({"job": job, "ordinal": ordinal, "person": person, "until": until})
    else:
        text = f" delegated to {person}; others are not notified until {times.clock(until)}"
        app.out.print(line(styled(question_name(job, ordinal), "bold"), text))
