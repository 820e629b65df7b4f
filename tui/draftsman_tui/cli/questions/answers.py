"""The `answer`, `approve`, `deny` and `request-changes` commands.

A question is named in full, `D-142/1`. On a terminal, a bare `D-142` shows its only open question
and asks for confirmation; elsewhere it is refused, so that an answer cannot reach a later question.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions import questions as actions
from draftsman.deliveries.question_text import closed_locally, closed_step, has_patch
from draftsman.errors import CommandHint, DraftsmanError, OptionHint, Refused, UsageError
from draftsman.formats.invisible import one_line
from draftsman.formats.times import clock_with_zone
from draftsman.ids import job_name
from draftsman.questions.answer import (
    NoSuchChoice,
    as_text,
    check_kind,
    no_changes,
    parse_answer,
)
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.perform import act, call_of
from draftsman_tui.common.artifacts import read_patch
from draftsman_tui.common.questions import answer_command, describe
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import plain
from draftsman_tui.terminal.results import result_line
from draftsman_tui.terminal.stdio import write_stderr

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftsman.actions.action import Action, ActionResult
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime


QuestionRef = tuple["JobRef", int | None]

TAKES_MORE: Final = frozenset({"answer", "delegate", "extend", "snooze"})
"""Verbs that need more than the name of a question."""


@command(
    "answer",
    section="Questions",
    examples=("draftsman answer D-142/1 2", "draftsman answer D-142/1 use the staging server"),
    does=(actions.answer,),
)
@click.argument("question", type=params.QUESTION)
@click.argument("value", nargs=-1, type=params.TEXT)
@click.option(
    "--text",
    "free_text",
    type=params.TEXT,
    help="Free text, also if it is a number or like a choice.",
)
@click.option("--only", is_flag=True, help="Leave identical questions of other jobs open.")
async def answer(
    app: App, question: QuestionRef, value: tuple[str, ...], free_text: str | None, only: bool
) -> None:
    """Answer a question.

    The answer counts for the identical questions of other jobs, too, unless --only is given.
    VALUE is the number or name of a choice, or free text if the question allows it; - reads it
    from stdin. Without VALUE, the question is shown and you are prompted for the answer. A number
    that no choice has, and a mistyped choice, are refused, and on a terminal confirmed; --text
    answers with them.
    """
    if value and free_text is not None:
        raise UsageError("VALUE cannot be combined with --text")
    text = params.read_stdin().strip() if value == ("-",) else " ".join(value)
    if free_text is not None:
        text = free_text.strip()

    def check(asked: Question) -> None:
        from draftsman.questions.response import build_response

        typed = text if free_text is None else as_text(asked, text)
        response = build_response("answer", asked.name, text=typed)
        check_kind(asked, response)
        with contextlib.suppress(NoSuchChoice):  # asks whether the text is meant
            parse_answer(asked, response)

    async with app.runtime() as rt:
        confirmed = check if text else None
        job, ordinal = await resolve_question(app, rt, question, "answer", check=confirmed)
        details = await rt.questions.get(job, ordinal)
        if free_text is not None:
            text = as_text(details, text)
        if not text and app.out.interactive and details.kind is QuestionKind.INPUT:
            if question[1] is not None:
                await _show(app, rt, details)
            await _prompt(app, rt, details, only=only)
            return
        if not text and details.kind is QuestionKind.INPUT:
            raise UsageError(f"VALUE is required: draftsman answer {details.name} VALUE")
        try:
            await act(app, rt, actions.answer, (job, ordinal), text=text, only=only)
        except NoSuchChoice as error:
            if not app.out.interactive:
                hint = OptionHint("text", lead=f"to answer with {error.text}, use")
                subject = f"{details.name}:"
                raise UsageError(error.problem, subject=subject, hint=hint) from None
            problem = error.problem if error.problem.endswith("?") else f"{error.problem}."
            prompts.confirm(f"{details.name}: {problem} Answer with the text {error.text}?")
            await act(
                app, rt, actions.answer, (job, ordinal), text=as_text(details, text), only=only
            )


@command(
    "approve",
    section="Questions",
    examples=("draftsman approve D-142/1 --reason 'looked at the diff'",),
    does=(actions.approve, actions.mint_token),
)
@click.argument("question", type=params.QUESTION)
@click.option("--reason", type=params.TEXT, help="Reason, recorded with the decision.")
@click.option(
    "--token", type=params.TEXT_OR_STDIN, help="Approve with a token; - reads it from stdin."
)
@click.option(
    "--mint-token",
    metavar="PERSON",
    help="Print a single-use token that approves or denies as you.",
)
async def approve(
    app: App, question: QuestionRef, reason: str | None, token: str | None, mint_token: str | None
) -> None:
    """Approve a question that asks for approval."""
    if mint_token is None:
        await _decide(app, question, actions.approve, token, reason=reason or "")
        return
    async with app.runtime() as rt:
        row = await resolve_question(app, rt, question, "approve")
        result = await act(app, rt, actions.mint_token, row, approver=mint_token, prints=app.json)
    if not app.json:  # stdout has the token alone
        app.out.info(str(result_line(result)))
        app.out.write(f"{result.value}\n")


@command(
    "deny",
    section="Questions",
    examples=("draftsman deny D-142/1 --reason 'touches the billing code'",),
    does=(actions.deny,),
)
@click.argument("question", type=params.QUESTION)
@click.option("--reason", type=params.TEXT, help="Reason, recorded with the decision.")
@click.option(
    "--token", type=params.TEXT_OR_STDIN, help="Deny with a token; - reads it from stdin."
)
async def deny(app: App, question: QuestionRef, reason: str | None, token: str | None) -> None:
    """Deny a question that asks for approval.

    A single denial decides. The question determines whether the job then fails or continues.
    """
    await _decide(app, question, actions.deny, token, reason=reason or "")


@command(
    "request-changes",
    section="Questions",
    examples=(
        "draftsman request-changes D-142/1 'use the v2 API'",
        "draftsman request-changes D-142/1 --comment src/api.py:12='handle None'",
        "draftsman request-changes D-142/1 --comment a.py='split it' --comment b.py:3='no'",
        "draftsman request-changes D-142/1 - < review.md",
    ),
    does=(actions.request_changes,),
)
@click.argument("question", type=params.QUESTION)
@click.argument("text", nargs=-1, type=params.TEXT)
@click.option(
    "--comment",
    "comments",
    multiple=True,
    type=params.TEXT,
    metavar="FILE[:LINE]=TEXT",
    help="Comment on a changed file, or on a line that its diff shows; may be repeated.",
)
@click.option(
    "--token", type=params.TEXT_OR_STDIN, help="Decide with a token; - reads it from stdin."
)
async def request_changes(
    app: App,
    question: QuestionRef,
    text: tuple[str, ...],
    comments: tuple[str, ...],
    token: str | None,
) -> None:
    """Request changes of the work that an approval is about.

    Its agent gets TEXT and the comments as its next turn, and you are asked again about the new
    work; - reads TEXT from stdin, and a line of it that is FILE:LINE=TEXT is a comment. Not for
    an approval without an agent that would make the changes.
    """
    typed = params.read_stdin().strip() if text == ("-",) else " ".join(text)
    if not typed and not comments and app.out.interactive:
        typed = prompts.prompt(actions.request_changes.takes.prompt.format("the work")).strip()
    await _decide(
        app,
        question,
        actions.request_changes,
        token,
        check=_check_takes_changes,
        text=typed,
        comments=comments,
    )


def _check_takes_changes(question: Question) -> None:
    if not question.takes_changes:
        raise no_changes(question)


async def resolve_question(
    app: App,
    rt: Runtime,
    question: QuestionRef,
    verb: str,
    *,
    check: Callable[[Question], None] | None = None,
) -> tuple[int, int]:
    """Return job number and ordinal; for a bare job, show its only open question and confirm.

    `check` raises UsageError before the confirmation if the question does not take what is typed.
    Raises UsageError for a bare job without a terminal or with several open questions, and Refused
    without an open question or on no.
    """
    job = await number_of(rt, question[0])
    if question[1] is not None:
        return job, question[1]
    open_questions = await rt.questions.open(job)
    if not open_questions:
        raise Refused(f"{job_name(job)} has no open question; see: draftsman why {job_name(job)}")
    if len(open_questions) > 1:
        listed = "; ".join(f"{item.name} ({one_line(item.text)[:60]})" for item in open_questions)
        raise UsageError(
            f"{job_name(job)} has {len(open_questions)} open questions; name one of them: {listed}"
        )
    if not app.out.interactive:
        raise UsageError(
            f"{job_name(job)} is a job, not a question; to {verb} its open question:"
            f" draftsman {verb} {open_questions[0].name}{' …' if verb in TAKES_MORE else ''}"
        )
    await _show(app, rt, open_questions[0])
    if check is not None:
        check(open_questions[0])
    if check is not None or open_questions[0].kind is QuestionKind.APPROVAL or verb == "extend":
        prompts.confirm(f"{verb.capitalize()} {open_questions[0].name}?")
    return job, open_questions[0].ordinal


async def perform_on_question(
    app: App, action: Action[actions.QuestionRow, ..., Any], question: QuestionRef, **arguments: Any
) -> None:
    """Take an action on a question, which a bare job may stand for."""
    async with app.runtime() as rt:
        row = await resolve_question(app, rt, question, action.name)
        await act(app, rt, action, row, **arguments)


async def _decide(
    app: App,
    question: QuestionRef,
    action: Action[actions.QuestionRow, ..., Any],
    token: str | None,
    *,
    check: Callable[[Question], None] | None = None,
    **arguments: Any,
) -> None:
    if token is not None and question[1] is None:
        raise UsageError("--token requires a full question name, e.g. D-142/1")
    async with app.runtime() as rt:
        row = await resolve_question(app, rt, question, action.name, check=check)
        secret = token.strip() if token else None
        await act(app, rt, action, row, token=secret, **arguments)


async def _prompt(app: App, rt: Runtime, question: Question, *, only: bool) -> None:
    """Prompt until the question accepts the answer; an empty line raises Refused."""
    row = (question.job, question.ordinal)
    while True:
        text = prompts.prompt(_prompt_text(question).removesuffix(": "), default="").strip()
        if not text:
            hint = CommandHint("answer", question.name, lead="to answer it")
            raise Refused("stays open", subject=question.name, hint=hint)
        try:
            await act(app, rt, actions.answer, row, text=text, only=only)
            return
        except UsageError as error:
            app.out.info(str(error))


async def _show(app: App, rt: Runtime, question: Question) -> None:
    app.out.print_stderr(*await describe(rt, question))


POLL_INTERVAL: Final = 1.0
"""Seconds between looks at a question that other people may answer."""
MAX_LINE: Final = 65536
"""Bytes of a line that are read at a time."""
YES: Final = ("y", "yes", "approve")
NO: Final = ("n", "no", "deny")
CHANGES: Final = ("r", "request changes", "request-changes")


class QuestionPrompter:
    """Prints each open question once, and asks for its answer if this is a terminal."""

    def __init__(self, app: App, rt: Runtime) -> None:
        self._app = app
        self._rt = rt
        self._printed: set[str] = set()
        self._asks = app.out.interactive and not app.json

    async def ask(self, number: int) -> None:
        """Print the open questions of a job, and ask for their answers.

        Those are left out that this person has answered, while it can be undone.
        """
        for question in await self._rt.questions.open(number):
            if question.name not in self._printed:
                self._printed.add(question.name)
                if await self._is_answered(question):
                    continue
                self._app.out.print_stderr(*await describe(self._rt, question))
                if self._asks:
                    await self._prompt(question)

    async def _is_answered(self, question: Question) -> bool:
        """Return whether an answer of this person waits for its undo window; it is then said."""
        held = await self._rt.pending_decisions.of_question(
            question.job, question.ordinal, await self._rt.actor()
        )
        if held is None:
            return False
        at = clock_with_zone(held.applies_at)
        undo = CommandHint("undo", held.name, lead="to undo")
        self._app.out.info(f"{held.name}: your answer counts at {at}; {undo}")
        return True

    async def _prompt(self, question: Question) -> None:
        """Ask until the question is closed; an empty line leaves it open."""
        while True:
            text = await self._read(question, _prompt_text(question))
            if text is None:
                return
            if question.kind is QuestionKind.APPROVAL and text.lower() == "d":
                patch = await read_patch(self._rt, question.job, question.run)
                write_stderr(plain(patch or "no changes\n"))
                continue
            try:
                result = await self._submit(question, text)
            except UsageError as error:
                self._app.out.info(str(error))
                continue
            except DraftsmanError as error:
                self._app.out.info(str(error))
                return
            if result is not None:
                self._app.out.print_stderr(result_line(result))
            return

    async def _submit(self, question: Question, text: str) -> ActionResult[Any] | None:
        """Submit the answer; None if the question closed meanwhile. Raises DraftsmanError."""
        call = await call_of(self._app, self._rt)
        row = (question.job, question.ordinal)
        if question.kind is not QuestionKind.APPROVAL:
            return await actions.answer(call, row, text)
        changes = CHANGES if question.takes_changes else ()
        if text.lower() not in (*YES, *NO, *changes):
            known = ["y to approve", "n to deny", "d for the diff"]
            known[2:2] = ["r to request changes"] if changes else []
            raise UsageError(f"{text[:60]!r}: enter {', '.join(known)}")
        if text.lower() in YES:
            return await actions.approve(call, row)
        if text.lower() in changes:
            wanted = await self._read(question, "What should change? (enter: not now) ")
            return None if wanted is None else await actions.request_changes(call, row, wanted)
        reason = await self._read(question, "Reason (optional): ", optional=True)
        return None if reason is None else await actions.deny(call, row, reason)

    async def _read(self, question: Question, prompt: str, *, optional: bool = False) -> str | None:
        """Read a line, unless the question closes first; None: closed, or left open.

        Text typed before the prompt is dropped: it was not about this question.
        """
        import asyncio

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        write_stderr(prompt)
        reading = asyncio.create_task(_read_line())
        closing = asyncio.create_task(self._closed(question))
        try:
            await asyncio.wait({reading, closing}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                text = reading.result()
                if text or optional:
                    return text
                self._app.out.info(f"{question.name} stays open; to answer it:")
                self._app.out.print_stderr(answer_command(question))
                return None
            current = closing.result()
            status = (await self._rt.read_model.job(question.job)).status
            step = closed_step(question.job, status)
            self._app.out.info(f"\n{closed_locally(current)}; {step}")
            return None
        except asyncio.CancelledError:
            write_stderr("\n")  # the prompt has none
            raise
        finally:
            for task in (reading, closing):
                task.cancel()
            await asyncio.gather(reading, closing, return_exceptions=True)

    async def _closed(self, question: Question) -> Question:
        import asyncio

        while True:
            current = await self._rt.questions.get(question.job, question.ordinal)
            if current.status is not QuestionStatus.OPEN:
                return current
            await asyncio.sleep(POLL_INTERVAL)


async def _read_line() -> str:
    """Read a line of the terminal without blocking the event loop; "" at its end."""
    import asyncio

    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    number = sys.stdin.fileno()
    data = b""
    loop.add_reader(number, ready.set)
    try:
        while not data.endswith(b"\n"):
            await ready.wait()
            ready.clear()
            part = os.read(number, MAX_LINE)
            if not part:
                break
            data += part
    finally:
        loop.remove_reader(number)
    return data.decode("utf-8", "replace").strip()


def _prompt_text(question: Question) -> str:
    if question.kind is QuestionKind.APPROVAL:
        diff = "d: diff, " if has_patch(question) else ""
        changes = "r: request changes, " if question.takes_changes else ""
        return f"Approve {question.name}? y, n, {changes}{diff}enter: not now: "
    return f"{actions.answer.takes.prompt.format(question.name)} (enter: not now): "
