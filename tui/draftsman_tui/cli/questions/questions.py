"""The `questions` and `extend` commands: the inbox of open questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.actions import questions as actions
from draftsman.deliveries.documents.json import question_json
from draftsman.entities.questions import INBOX
from draftsman.ids import job_name
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.perform import call_of, print_result
from draftsman_tui.common.questions import describe
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef


@command(
    "questions",
    section="Questions",
    examples=("draftsman questions", "draftsman questions D-142 --json"),
)
@click.argument("job", type=params.JOB, required=False)
async def questions(app: App, job: JobRef | None) -> None:
    """List open questions and approvals.

    Sorted by deadline, earliest first. Identical questions of several jobs are shown once,
    and separately with --json.
    """
    async with app.runtime(read_only=app.json) as rt:
        number = None if job is None else await number_of(rt, job)
        viewer = None if app.json else await rt.actor()
        open_questions = await rt.questions.open(number, fold_for=viewer)
        if viewer is None:
            attention = await rt.acknowledgments.attention([q.job for q in open_questions])
            app.out.document(
                [
                    question_json(question)
                    | {"attention": attention.get((question.job, question.ordinal))}
                    for question in open_questions
                ]
            )
            return
        for index, question in enumerate(open_questions):
            if index:
                app.out.print("")
            app.out.print(*await describe(rt, question))
        if open_questions:
            await rt.figures.record_views(open_questions, viewer)
        if not open_questions and number is not None:
            app.out.info(
                f"{job_name(number)} has no open questions; see: draftsman why {job_name(number)}"
            )
        elif not open_questions:
            app.out.info(INBOX.empty)


@command(
    "extend",
    section="Questions",
    examples=("draftsman extend D-142/1 2h", "draftsman extend D-142/1 never"),
    does=(actions.extend,),
)
@click.argument("question", type=params.QUESTION)
@click.argument("duration", metavar="DURATION|never", type=params.EXTENSION)
async def extend(app: App, question: tuple[JobRef, int | None], duration: float) -> None:
    """Extend the time to answer a question.

    DURATION is added to the remaining time; never removes the deadline.
    """
    from draftsman_tui.cli.questions.answers import resolve_question

    seconds = None if duration == float("inf") else duration
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "extend")
        result = await actions.extend(await call_of(rt), (job, ordinal), seconds)
    print_result(app, result, {"job": job, "ordinal": ordinal, "expires_at": result.value})
