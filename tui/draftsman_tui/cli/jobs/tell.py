"""The `tell` command: a message to the agent of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef


@command(
    "tell",
    examples=(
        "draftsman tell D-142 'use the v2 API'",
        "draftsman tell D-142 --key review-7 'the tests are in tests/api'",
        "draftsman tell D-142 - < notes.md",
    ),
)
@click.argument("job", type=params.JOB)
@click.argument("message", nargs=-1, type=params.TEXT)
@click.option(
    "--key",
    type=params.TEXT,
    help="Idempotency key: sent once; refused with another text.",
)
async def tell(app: App, job: JobRef, message: tuple[str, ...], key: str | None) -> None:
    """Send a message to the agent of a job.

    MESSAGE - reads the text from stdin. A running agent gets the message between two turns; without
    one, the next run gets it. draftsman show lists the messages, and which are delivered.
    """
    text = params.read_stdin() if message == ("-",) else " ".join(message)
    if not text.strip():
        raise UsageError("MESSAGE is required: draftsman tell D-142 'use the v2 API'")
    async with app.runtime() as rt:
        number = await number_of(rt, job)
        sent = await rt.messages.send(number, await rt.actor(), text, key=key)
    if app.json:
        app.out.document(sent)
    else:
        app.out.print(str(sent))
