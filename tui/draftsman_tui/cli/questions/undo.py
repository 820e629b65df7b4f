"""The `undo` command."""

from __future__ import annotations

import click

from draftsman.actions import decisions
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.perform import act, call_of
from draftsman_tui.cli.questions.answers import QuestionRef
from draftsman_tui.terminal import params


@command(
    "undo",
    section="Questions",
    examples=("draftsman undo", "draftsman undo D-142/1", "draftsman undo --json"),
    does=(decisions.undo,),
)
@click.argument("question", type=params.QUESTION, required=False)
async def undo(app: App, question: QuestionRef | None) -> None:
    """Take back your newest answer or decision, until it counts.

    An answer or a decision on a terminal, in the dashboard or in the web inbox counts after 10
    seconds (undo of [questions]); until then it can be undone, wherever you made it, and so can a
    cancel of the dashboard. Without a terminal, as in a script, an answer counts at once. QUESTION
    selects a question, or the newest of a job.
    """
    async with app.runtime() as rt:
        job, ordinal = question or (None, None)
        number = None if job is None else await number_of(rt, job)
        decision = await decisions.pending(await call_of(app, rt), number, ordinal)
        await act(app, rt, decisions.undo, decision)
