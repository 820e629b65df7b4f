"""The command `digest`: questions in a single message at chosen hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman_tui.cli.app import App, command
from draftsman_tui.terminal import params, times

if TYPE_CHECKING:
    from draftsman.attention.digests import DigestHours


@command(
    "digest",
    examples=(
        "draftsman digest",
        "draftsman digest 09:00,15:00 --timezone Europe/Berlin",
        "draftsman digest off",
    ),
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
    async with app.runtime(read_only=hours is None) as rt:
        actor = await rt.actor()
        if hours is None:
            chosen = await rt.digests.hours(person or actor.voter)
        else:
            chosen = await rt.digests.choose(hours, actor, timezone=timezone, person=person)
    if app.json:
        app.out.document(chosen)
    else:
        app.out.print(_text(chosen))


def _text(chosen: DigestHours | None) -> str:
    if chosen is None:
        return "no digest: questions notify at once"
    following = f"; the next {times.left(chosen.next_at)}" if chosen.next_at is not None else ""
    return f"digest of {chosen.person} at {chosen.text} {chosen.timezone}{following}"
