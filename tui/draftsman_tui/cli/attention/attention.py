"""The commands of attention: `ack`, `snooze`, `delegate` and `digest`."""

from __future__ import annotations

import click

from draftsman.actions import people
from draftsman.actions import questions as actions
from draftsman.attention.attention import ACKNOWLEDGED, SNOOZED
from draftsman.durations import format_duration
from draftsman.errors import UsageError
from draftsman.ids import JobRef
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.perform import perform, print_result
from draftsman_tui.cli.questions.answers import perform_on_question
from draftsman_tui.terminal import params


def delay_options(default: float) -> params.Option:
    """Add `--for`, and the duration as an argument, as it is written in a chat."""
    help = f"How long reminders wait; at most 1d. Default: {format_duration(default)}."
    return params.together(
        params.duration_argument("[DURATION]", params.REMINDER_DELAY),
        click.option("--for", "seconds", type=params.REMINDER_DELAY, help=help),
    )


def _delay(duration: float | None, seconds: float | None, default: float) -> float:
    """Return the seconds of a delay; raises UsageError for two of them."""
    if duration is not None and seconds is not None:
        raise UsageError("the duration was given twice; use --for alone")
    return duration or seconds or default


@command(
    "ack",
    section="Questions",
    examples=("draftsman ack D-142/1", "draftsman ack D-142/1 --for 3h"),
    does=(actions.acknowledge,),
)
@click.argument("question", type=params.QUESTION)
@delay_options(ACKNOWLEDGED)
async def ack(
    app: App, question: tuple[JobRef, int | None], duration: float | None, seconds: float | None
) -> None:
    """Acknowledge a question: you work on the answer.

    DURATION is short for --for. Others are notified once, and all reminders and steps of the ladder
    wait until then. The question stays open for everyone, and its deadline stays. While the
    acknowledgment of another person holds, yours is refused.
    """
    delay = _delay(duration, seconds, ACKNOWLEDGED)
    await perform_on_question(app, actions.acknowledge, question, seconds=delay)


@command(
    "snooze",
    section="Questions",
    examples=("draftsman snooze D-142/1", "draftsman snooze D-142/1 --for 4h"),
    does=(actions.snooze,),
)
@click.argument("question", type=params.QUESTION)
@delay_options(SNOOZED)
async def snooze(
    app: App, question: tuple[JobRef, int | None], duration: float | None, seconds: float | None
) -> None:
    """Pause your own reminders of a question.

    DURATION is short for --for. Others are reminded as before, and so is a channel that they read.
    """
    delay = _delay(duration, seconds, SNOOZED)
    await perform_on_question(app, actions.snooze, question, seconds=delay)


@command(
    "delegate",
    section="Questions",
    examples=(
        "draftsman delegate D-142/1 bob",
        "draftsman delegate D-142/1 --to bob --for 4h",
    ),
    does=(actions.delegate,),
)
@click.argument("question", type=params.QUESTION)
@click.argument("person", type=params.TEXT, required=False)
@click.option("--to", "named", type=params.TEXT, metavar="PERSON", help="Person who may answer it.")
@delay_options(ACKNOWLEDGED)
async def delegate(
    app: App,
    question: tuple[JobRef, int | None],
    person: str | None,
    named: str | None,
    duration: float | None,
    seconds: float | None,
) -> None:
    """Ask another person to answer a question.

    PERSON is short for --to, DURATION for --for.

    The person is notified, and the targets of the job get a notice. Reminders and the steps of
    the ladder wait until then. The question stays open for everyone who may answer it.
    """
    if (person is None) == (named is None):
        raise UsageError("give one person: draftsman delegate D-142/1 bob, or --to bob")
    delay = _delay(duration, seconds, ACKNOWLEDGED)
    await perform_on_question(
        app, actions.delegate, question, person=person or named, seconds=delay
    )


# The command `digest`: questions in a single message at chosen hours.


@command(
    "digest",
    section="Questions",
    examples=(
        "draftsman digest",
        "draftsman digest 09:00,15:00 --timezone Europe/Berlin",
        "draftsman digest off",
    ),
    does=(people.digest,),
)
@click.argument("hours", type=params.TEXT, metavar="[HOURS|off]", required=False)
@click.option(
    "--timezone",
    type=params.TEXT,
    metavar="ZONE",
    help="Time zone of the hours; default: yours, as configured.",
)
@click.option("--person", type=params.TEXT, metavar="NAME", help="Another person; for operators.")
async def digest(app: App, hours: str | None, timezone: str | None, person: str | None) -> None:
    """Get your questions in a digest at hours of your own.

    The digest is a single message instead of a message for each question: a comment on the digest
    card of the Trello board that asks (boards set --digest-card), else a private message in Slack,
    or for people without an account there in the log of the worker. Without HOURS, the current
    hours are shown. Approvals, and questions that expire before the digest, still notify
    you at once.
    """
    if hours is not None:
        await perform(app, people.digest, person, hours=hours, timezone=timezone)
        return
    async with app.runtime(read_only=True) as rt:
        chosen = await rt.digests.hours(person or (await rt.actor()).voter)
    print_result(app, people.digest_result(chosen))
