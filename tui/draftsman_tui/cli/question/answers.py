"""`answer`, `approve` and `deny`: a person's word on one question.

The question is always named in full, `D-142/1`. Who types a bare `D-142` is shown the question that
is open and asked about that one; without a terminal it is refused, because an answer meant for one
question must not land on the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.domain.answer import Response
from draftsman.domain.question import Question, QuestionKind
from draftsman.errors import Refused, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params
from draftsman_tui.common.answer_submission import _refused, build_response, outcome_text
from draftsman_tui.common.output import line, styled
from draftsman_tui.common.question_text import describe

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime

QuestionRef = tuple["JobRef", int | None]


@command(
    "answer",
    examples=("draftsman answer D-142/1 2", "draftsman answer D-142/1 use the staging server"),
)
@click.argument("question", type=params.QUESTION)
@click.argument("value", nargs=-1, type=params.TEXT)
async def answer(app: App, question: QuestionRef, value: tuple[str, ...]) -> None:
    """Answer a question.

    VALUE is a choice, by number or name, or free text where that is allowed; - reads it from
    stdin. Without it you are shown the question and asked.
    """
    said = params.read_stdin().strip() if value == ("-",) else " ".join(value)
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "answer", confirm=bool(said))
        asked = await rt.questions.get(job, ordinal)
        if not said and app.out.interactive and asked.kind is QuestionKind.INPUT:
            if question[1] is not None:
                await _show(app, rt, asked)
            await _prompt(app, rt, asked)
            return
        if not said and asked.kind is QuestionKind.INPUT:
            raise UsageError(f"say what the answer is: draftsman answer {asked.name} VALUE")
        await _hand_in(app, rt, job, ordinal, build_response(text=said))


@command(
    "approve",
    examples=("draftsman approve D-142/1 --reason 'looked at the diff'",),
)
@click.argument("question", type=params.QUESTION)
@click.option("--reason", type=params.TEXT, help="Kept with the decision.")
@click.option(
    "--token", type=params.TEXT_OR_STDIN, help="Decide by a token; - reads it from stdin."
)
@click.option(
    "--mint-token",
    metavar="PERSON",
    help="Print a token that decides once, for you.",
)
async def approve(
    app: App, question: QuestionRef, reason: str | None, token: str | None, mint_token: str | None
) -> None:
    """Approve what a job wants to do."""
    if mint_token is None:
        await _decide(app, question, True, reason, token)
        return
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "approve")
        made = await rt.questions.mint_token(job, ordinal, mint_token, await rt.actor())
    app.out.info(
        f"it is shown only now, and counts once: draftsman approve D-{job}/{ordinal} --token -"
    )
    if app.json:
        app.out.document({"job": job, "ordinal": ordinal, "approver": mint_token, "token": made})
    else:
        app.out.write(f"{made}\n")


@command("deny", examples=("draftsman deny D-142/1 --reason 'touches the billing code'",))
@click.argument("question", type=params.QUESTION)
@click.option("--reason", type=params.TEXT, help="Kept with the decision.")
@click.option(
    "--token", type=params.TEXT_OR_STDIN, help="Decide by a token; - reads it from stdin."
)
async def deny(app: App, question: QuestionRef, reason: str | None, token: str | None) -> None:
    """Deny what a job wants to do.

    The first denial decides. Whether the job then fails or goes on is its own word.
    """
    await _decide(app, question, False, reason, token)


async def resolve_question(
    app: App, rt: Runtime, question: QuestionRef, verb: str, *, confirm: bool = False
) -> tuple[int, int]:
    """Return job and ordinal; a bare job is shown its open question first, or refused.

    Raises UsageError without a terminal, Refused when nothing is open or the person said no.
    """
    job = await number_of(rt, question[0])
    if question[1] is not None:
        return job, question[1]
    found = await rt.questions.open(job)
    if not found:
        raise Refused(f"D-{job} has no open question; see: draftsman why D-{job}")
    if not app.out.interactive:
        raise UsageError(
            f"D-{job} names no question; the open one is {found[0].name}:"
            f" draftsman {verb} {found[0].name} …"
        )
    await _show(app, rt, found[0])
    if confirm or found[0].kind is QuestionKind.APPROVAL or verb == "extend":
        prompts.confirm(f"{verb} {found[0].name}?")
    return job, found[0].ordinal


async def _decide(
    app: App, question: QuestionRef, decision: bool, reason: str | None, token: str | None
) -> None:
    if token is not None and question[1] is None:
        raise UsageError("a token decides one question; name it in full: D-142/1")
    async with app.runtime() as rt:
        job, ordinal = await resolve_question(app, rt, question, "approve" if decision else "deny")
        token = token.strip() if token else None
        given = build_response(decision=decision, reason=reason, token=token)
        await _hand_in(app, rt, job, ordinal, given)


async def _prompt(app: App, rt: Runtime, question: Question) -> None:
    """Ask until the answer is one that the question takes."""
    while True:
        said = prompts.prompt(f"Answer to {question.name}").strip()
        try:
            await _hand_in(app, rt, question.job, question.ordinal, build_response(text=said))
            return
        except UsageError as error:
            app.out.info(str(error))


async def _hand_in(app: App, rt: Runtime, job: int, ordinal: int, given: Response) -> None:
    """Give the answer, print what became of it; raises Refused or LostRace if nothing did."""
    verdict = await rt.questions.answer(job, ordinal, given, await rt.actor())
    if app.json:
        app.out.document(verdict)
    if not verdict.accepted:
        raise await _refused(rt, verdict, given.source_event_id)
    if not app.json:
        app.out.print(line(styled(verdict.name, "bold"), f" {outcome_text(verdict)}"))


async def _show(app: App, rt: Runtime, question: Question) -> None:
    app.out.print_stderr(*await describe(rt, question))
