"""Answers and decisions for several questions: marked rows with the same choices, or a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from draftsman.actions import questions as actions
from draftsman.actions.action import Action, listed
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.question_text import visible_context
from draftsman.errors import Refused
from draftsman.questions.answer import no_changes
from draftsman.questions.question import Decision, OpenQuestion, QuestionKind, asking_text
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
    count = len(questions)
    if not text:
        subject = f"One answer for {count} questions: {_names(questions)}"
        dialog = AnswerDialog(_all_texts(questions), QuestionContext(subject=subject))
        text = await screen.ask(dialog) or ""
    if text:
        labels = {str(choice["value"]): str(choice["label"]) for choice in questions[0].choices}
        note = f"Answer: {labels.get(text, text)}\n\n{_list(questions)}"
        if await asked(screen, f"Answer {count} questions?", note):
            await _submit(screen, questions, actions.answer, text)


async def _decide(
    screen: BaseScreen, questions: Sequence[OpenQuestion], decision: Decision | None, text: str
) -> None:
    count = len(questions)
    refusing = [question for question in questions if not question.takes_changes]
    if decision is None:
        choices = [
            (f"{_verb(one)} all {count}", one)
            for one in DECIDING
            if one is not Decision.REQUEST_CHANGES or not refusing
        ]
        decision = await screen.ask(
            ChoiceDialog(f"Decide {count} requests: {_names(questions)}", choices)
        )
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
        note = f"Reason: {text}\n\n{_list(questions)}"
        if await asked(screen, f"{_verb(decision).capitalize()} {count} requests?", note):
            await _submit(screen, questions, action, text)


async def _submit(
    screen: BaseScreen,
    questions: Sequence[OpenQuestion],
    action: Action[actions.QuestionRow, ..., Any],
    text: str,
) -> None:
    call = call_of(screen, action)
    await perform_each(
        screen,
        action,
        [(question.job, question.ordinal) for question in questions],
        lambda row: action(call, row, text),
        job=lambda row: row[0],
    )


def _verb(decision: Decision) -> str:
    return decision.replace("_", " ") + " of" * (decision is Decision.REQUEST_CHANGES)


def _shape(question: OpenQuestion) -> tuple[object, ...]:
    choices = tuple(str(choice["value"]) for choice in question.choices)
    return question.kind, choices, tuple(question.labels()), question.freeform_allowed


def _names(questions: Sequence[OpenQuestion]) -> str:
    return listed([question.name for question in questions])


def _all_texts(questions: Sequence[OpenQuestion]) -> OpenQuestion:
    """Return the first question with the text of each, if they differ."""
    first = questions[0]
    if all(_asked(question) == _asked(first) for question in questions):
        return first
    return replace(first, text=_list(questions), context_snippet=None)


def _list(questions: Sequence[OpenQuestion]) -> str:
    """Return each text once, below the names and titles of its questions."""
    names: dict[str, list[str]] = {}
    for question in questions:
        names.setdefault(_asked(question), []).append(_name(question))
    return "\n\n".join("\n".join([*lines, text]) for text, lines in names.items())


def _name(question: OpenQuestion) -> str:
    name = f"{question.name}  {first_line(question.title, 40)}"
    return f"{name} · {asking}" if (asking := asking_text(question.job, question.others)) else name


def _asked(question: OpenQuestion) -> str:
    """Return the whole text of a question, with its context and what an approval allows."""
    context = visible_context(question) if question.context_snippet else ""
    action = question.approved_action
    allowed = f"If approved: {action_text(action)}" if action else ""
    return "\n".join(filter(None, (question.text, context, allowed)))
