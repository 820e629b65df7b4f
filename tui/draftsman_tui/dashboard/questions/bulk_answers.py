"""Answers and decisions for several questions: marked rows with the same choices, or a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from draftsman.deliveries.action_text import action_text
from draftsman.errors import Refused
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.questions.question import OpenQuestion, QuestionKind
from draftsman.text import first_line
from draftsman_tui.common.answers import build_response, hold_response
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog, ConfirmDialog, PromptDialog
from draftsman_tui.dashboard.frame.bulk import MAX_LISTED, report_held, run_bulk
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen


async def apply(screen: BaseScreen, decision: bool | None, text: str) -> bool:
    """Answer the questions of several selected rows; False for a single row.

    `decision` approves or denies, None asks what to do. `text` is the answer or the reason. Raises
    Refused if the questions differ.
    """
    if len(screen.ids) < 2:
        return False
    questions = await screen.rt.questions.open_of(screen.jobs())
    if names := {name for name in screen.ids if "/" in name}:  # rows of questions, not of jobs
        questions = [question for question in questions if question.name in names]
    if not questions:
        raise Refused(f"none of the {len(screen.ids)} marked rows has an open question")
    if len({_shape(question) for question in questions}) > 1:
        raise Refused("the marked questions have different choices; press A to review them in turn")
    if questions[0].kind is QuestionKind.APPROVAL:
        await _decide(screen, questions, decision, text)
    elif decision is not None:
        raise Refused("the marked rows are questions, not approvals; press a to answer them")
    else:
        await _answer(screen, questions, text)
    return True


async def _answer(screen: BaseScreen, questions: Sequence[OpenQuestion], text: str) -> None:
    if not text:
        names = ", ".join(question.name for question in questions[:MAX_LISTED])
        unlisted = f" and {len(questions) - MAX_LISTED} more" if questions[MAX_LISTED:] else ""
        subject = f"One answer for {len(questions)} questions: {names}{unlisted}"
        dialog = AnswerDialog(questions[0], QuestionContext(subject=subject))
        text = await screen.ask(dialog) or ""
    if text:
        await _submit(screen, questions, "answered", {"text": text})


async def _decide(
    screen: BaseScreen, questions: Sequence[OpenQuestion], decision: bool | None, reason: str
) -> None:
    count = len(questions)
    if decision is None:
        choices = [(f"approve all {count}", True), (f"deny all {count}", False)]
        decision = await screen.ask(ChoiceDialog(_list(questions), choices))
    if decision is None:
        return
    if decision:
        note = f"{_list(questions)}\n\nThe diffs are not shown; press A to review them in turn."
        if not await screen.ask(ConfirmDialog(f"Approve {count} requests?", note)):
            return
    elif not reason:
        prompt = PromptDialog(f"Reason to deny {count} requests?", "not on a Friday")
        reason = await screen.ask(prompt) or ""
        if not reason:
            return
    fields = {"decision": decision, "reason": reason or None}
    await _submit(screen, questions, "approved" if decision else "denied", fields)


async def _submit(
    screen: BaseScreen,
    questions: Sequence[OpenQuestion],
    done: str,
    fields: Mapping[str, Any],
) -> None:
    ordinals = {question.job: question.ordinal for question in questions}
    held = []

    async def answer_job(number: int) -> None:
        response = build_response(event=f"tui:{uuid4()}", **fields)
        submitted = await hold_response(
            screen.rt,
            job=number,
            ordinal=ordinals[number],
            response=response,
            actor=screen.actor,
            window=screen.session.undo.seconds,
        )
        if isinstance(submitted, PendingDecision):
            held.append(submitted)

    result = await run_bulk(screen, "Answering", list(ordinals), answer_job)
    report_held(screen, result, done, held)


def _shape(question: OpenQuestion) -> tuple[object, ...]:
    choices = tuple(str(choice["value"]) for choice in question.choices)
    return question.kind, choices, tuple(question.labels()), question.freeform_allowed


def _list(questions: Sequence[OpenQuestion]) -> str:
    """Return a line for each of the first questions: its job and what it is about."""
    lines = [
        f"{question.name}  {first_line(question.title, 40)}: {_subject(question)}"
        for question in questions[:MAX_LISTED]
    ]
    hidden = len(questions) - len(lines)
    return "\n".join([*lines, *([f"and {hidden} more"] if hidden else [])])


def _subject(question: OpenQuestion) -> str:
    action = question.approved_action
    return action_text(action) if action else first_line(question.text, 80)
