"""Answers and decisions for several questions: marked rows with the same choices, or a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.actions import questions as actions
from draftsman.actions.action import MAX_NAMED, Action, listed
from draftsman.deliveries.action_text import action_text
from draftsman.errors import Refused
from draftsman.questions.answer import no_changes
from draftsman.questions.question import Decision, OpenQuestion, QuestionKind
from draftsman.text import first_line
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog, PromptDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import asked, call_of, perform_each
from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext

DECIDING: Final[Mapping[Decision, Action[actions.QuestionRow, ..., Any]]] = {
    Decision.APPROVE: actions.approve,
    Decision.REQUEST_CHANGES: actions.request_changes,
    Decision.DENY: actions.deny,
}
"""The actions of decisions."""


async def apply(screen: BaseScreen, decision: Decision | None, text: str) -> bool:
    """Answer the questions of several selected rows; False for a single row.

    Without a `decision` on approvals, it is asked for. `text` is the answer or the reason. Raises
    Refused if the questions differ.
    """
    if len(screen.ids) < 2:
        return False
    questions = await screen.rt.questions.open_of(screen.jobs())
    if names := {name for name in screen.ids if "/" in name}:  # rows of questions, not of jobs
        questions = [question for question in questions if question.name in names]
    if not questions:
        raise Refused(f"none of the {len(screen.ids)} selected rows has an open question")
    if len({_shape(question) for question in questions}) > 1:
        raise Refused(
            "the selected questions have different choices; press A to review them in turn"
        )
    if questions[0].kind is QuestionKind.APPROVAL:
        await _decide(screen, questions, decision, text)
    elif decision is not None:
        raise Refused("the selected rows are questions, not approvals; press a to answer them")
    else:
        await _answer(screen, questions, text)
    return True


async def _answer(screen: BaseScreen, questions: Sequence[OpenQuestion], text: str) -> None:
    if not text:
        names = listed([question.name for question in questions])
        subject = f"One answer for {len(questions)} questions: {names}"
        dialog = AnswerDialog(questions[0], QuestionContext(subject=subject))
        text = await screen.ask(dialog) or ""
    if text:
        await _submit(screen, questions, actions.answer, text)


async def _decide(
    screen: BaseScreen, questions: Sequence[OpenQuestion], decision: Decision | None, text: str
) -> None:
    count = len(questions)
    refusing = [question for question in questions if not question.takes_changes]
    if decision is None:
        choices = [
            (f"{one.replace('_', ' ')}{' of' * (one is Decision.REQUEST_CHANGES)} all {count}", one)
            for one in DECIDING
            if one is not Decision.REQUEST_CHANGES or not refusing
        ]
        decision = await screen.ask(ChoiceDialog(_list(questions), choices))
    if decision is None:
        return
    if decision is Decision.REQUEST_CHANGES and refusing:
        raise no_changes(refusing[0])
    action = DECIDING[decision]
    if decision is Decision.APPROVE:
        note = f"{_list(questions)}\n\nThe diffs are not shown; press A to review them in turn."
        if await asked(screen, f"Approve {count} requests?", note):
            await _submit(screen, questions, action, text)
        return
    if not text:
        asks = f"{action.takes.prompt.format(f'{count} requests').rstrip('?')}?"
        text = await screen.ask(PromptDialog(asks, action.takes.example)) or ""
    if text:
        await _submit(screen, questions, action, text)


async def _submit(
    screen: BaseScreen,
    questions: Sequence[OpenQuestion],
    action: Action[actions.QuestionRow, ..., Any],
    text: str,
) -> None:
    ordinals = {question.job: question.ordinal for question in questions}
    call = call_of(screen, action)
    await perform_each(
        screen, action, [*ordinals], lambda number: action(call, (number, ordinals[number]), text)
    )


def _shape(question: OpenQuestion) -> tuple[object, ...]:
    choices = tuple(str(choice["value"]) for choice in question.choices)
    return question.kind, choices, tuple(question.labels()), question.freeform_allowed


def _list(questions: Sequence[OpenQuestion]) -> str:
    """Return a line for each of the first questions: its job and what it is about."""
    lines = [
        f"{question.name}  {first_line(question.title, 40)}: {_subject(question)}"
        for question in questions[:MAX_NAMED]
    ]
    hidden = len(questions) - len(lines)
    return "\n".join([*lines, *([f"and {hidden} more"] if hidden else [])])


def _subject(question: OpenQuestion) -> str:
    action = question.approved_action
    return action_text(action) if action else first_line(question.text, 80)
