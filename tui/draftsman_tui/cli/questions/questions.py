"""The `questions` and `extend` commands: the inbox of open questions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import click

from draftsman.actions import questions as actions
from draftsman.entities.questions import INBOX
from draftsman.formats.amounts import count_text, counted
from draftsman.ids import JobRef, job_name
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.lists import print_count, print_list, rows_to_read, selected
from draftsman_tui.common.questions import describe
from draftsman_tui.terminal import params

MAX_QUESTIONS: Final = 200
"""Questions of the list in the order of their deadlines."""


@command(
    "questions",
    section="Questions",
    examples=(
        "draftsman questions",
        "draftsman questions --sort waits --where by:anna",
        "draftsman questions D-142",
        "draftsman questions D-142 --json",
    ),
    lists=INBOX,
)
@click.argument("job", type=params.JOB_OF, required=False)
async def questions(app: App, job: JobRef | None) -> None:
    """List open questions and approvals.

    Sorted by deadline, earliest first. Those of a job, or a single question, are shown with their
    context, choices, and the command that answers. Identical questions of several jobs are shown
    and counted once, and shown separately with --json.
    """
    async with app.runtime(read_only=app.json) as rt:
        number = None if job is None else await number_of(rt, job)
        actor = await rt.actor()
        viewer = None if app.json and not app.counts else actor
        limit = rows_to_read(app, MAX_QUESTIONS - 1)
        open_questions = await rt.questions.open(number, limit, fold_for=viewer)
        now = datetime.now(UTC)
        shown = selected(app, INBOX, open_questions, now)
        if app.counts:
            is_all = number is None and not app.where
            print_count(app, (await rt.questions.counts(actor)).open if is_all else len(shown))
        elif viewer is None:
            attention = await rt.acknowledgments.attention([q.job for q in shown])
            app.out.document(
                [
                    INBOX.data(question)
                    | {"attention": attention.get((question.job, question.ordinal))}
                    for question in shown
                ]
            )
        elif not shown and number is not None:
            app.out.info(
                f"{job_name(number)} has no open questions; see: draftsman why {job_name(number)}"
            )
        elif number is None and len(shown) != 1:
            print_list(app, INBOX, open_questions, now=now)
            if shown:
                number_text = counted(len(shown), "open question")
                for_you = sum(question.for_viewer for question in shown)
                if not app.where:
                    counts = await rt.questions.counts(actor)
                    for_you = counts.for_you
                    if counts.open > len(shown):
                        number_text = f"{len(shown)} of {count_text(counts.open)} open questions"
                app.out.info(
                    f"{number_text}, {count_text(for_you)} for you; to read and answer one:"
                    " draftsman questions JOB"
                )
        else:
            for index, question in enumerate(shown):
                if index:
                    app.out.print("")
                app.out.print(*await describe(rt, question))
            await rt.figures.record_views(shown, viewer)


@command(
    "extend",
    section="Questions",
    examples=("draftsman extend D-142/1 2h", "draftsman extend D-142/1 never"),
    does=(actions.extend,),
)
@click.argument("question", type=params.QUESTION)
@params.duration_argument("DURATION|never", params.EXTENSION, required=True)
async def extend(app: App, question: tuple[JobRef, int | None], duration: float) -> None:
    """Extend the time to answer a question.

    DURATION is added to the remaining time; never removes the deadline.
    """
    from draftsman_tui.cli.questions.answers import perform_on_question

    seconds = None if duration == float("inf") else duration
    await perform_on_question(app, actions.extend, question, seconds=seconds)
