"""Questions tab: questions, approvals and answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from draftsman.deliveries.plain_text import resolution_text
from draftsman.formats import times
from draftsman.questions.answer import Answer
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, lines, note, row_of, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.questions import choice_lines, detail_lines, heading
from draftsman_tui.terminal.output import one_line

OPEN_CONTEXT_LINES: Final = 12
CLOSED_CONTEXT_LINES: Final = 4
"""Context lines of an open and a closed question."""
_INDENT: Final = 6


def questions(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each question, in order."""
    if not snapshot.details.questions:
        return [note(f"{snapshot.job.name} has no questions", width)]
    return [
        Item(question.name, tuple(_rows(question, snapshot, width, now)))
        for question in snapshot.details.questions
    ]


def _rows(question: Question, snapshot: JobSnapshot, width: int, now: datetime) -> Iterator[Row]:
    is_open = question.status is QuestionStatus.OPEN
    yield from wrap_row(
        _open_heading(question, snapshot, now) if is_open else _closed_heading(question, now),
        width,
        _INDENT,
    )
    if is_open and (asking := snapshot.details.asking.get(question.ordinal)):
        yield from wrap_row((Cell(f"  {asking}", "warns"),), width, 2)
    yield from lines(question.text, width, "  ")
    details = [
        row_of(text)
        for text in detail_lines(
            question, OPEN_CONTEXT_LINES if is_open else CLOSED_CONTEXT_LINES, "enter"
        )
    ]
    choices = [row_of(text) for text in choice_lines(question)]
    answers = list(_answers(question, snapshot, now))
    for row in [*details, *choices, *answers] if is_open else [*choices, *answers, *details]:
        yield from wrap_row(row, width, _INDENT)
    if is_open:
        verb = "decide" if question.kind is QuestionKind.APPROVAL else "answer"
        yield (Cell(f"  a: {verb}   e: extend", "key"),)
    yield ()


def _open_heading(question: Question, snapshot: JobSnapshot, now: datetime) -> Row:
    responders = snapshot.responders.get(question.ordinal, "no person")
    return row_of(heading(question, responders, now))


def _closed_heading(question: Question, now: datetime) -> Row:
    kind = "approval" if question.kind is QuestionKind.APPROVAL else "question"
    is_answered = question.status is QuestionStatus.ANSWERED
    when = f", {times.ago(question.answered_at, now)}" if question.answered_at else ""
    return (
        Cell(f"{question.name}  ", "head"),
        Cell(f"{kind} "),
        Cell(one_line(f"{resolution_text(question)}{when}"), "good" if is_answered else "warns"),
        Cell(f" · asked {times.ago(question.asked_at, now)}", "dim"),
    )


def _answers(question: Question, snapshot: JobSnapshot, now: datetime) -> Iterator[Row]:
    answers = [answer for answer in snapshot.details.answers if answer.question == question.ordinal]
    if question.kind is QuestionKind.APPROVAL and question.quorum > 1:
        votes = sum(
            answer.accepted and answer.payload.get("decision") == "approve" for answer in answers
        )
        yield (Cell(f"  {votes} of {question.quorum} approvals", "head"),)
    for answer in answers:
        yield _answer_row(question, answer, now)


def _answer_row(question: Question, answer: Answer, now: datetime) -> Row:
    name = answer.responder_display_name or answer.voter
    person = answer.voter.rpartition(":")[2]
    voter = name if person.casefold() in name.casefold() else f"{name}, as {person}"
    value = answer.payload.get("decision") or question.answer_text(answer.payload)
    verb = {"approve": "approves", "deny": "denies"}.get(str(value), f"answers {value}")
    reason = f": {answer.payload['reason']}" if answer.payload.get("reason") else ""
    text = Cell(f"{one_line(f'{voter} ({answer.source})')} ")
    text_value = one_line(f"{verb}{reason}")
    when = Cell(f", {times.ago(answer.created_at, now)}", "dim")
    if answer.accepted:
        return (Cell("  → ", "good"), text, Cell(text_value, "good"), when)
    rejection = one_line(f"not accepted: {answer.reason or 'no reason given'}")
    return (
        Cell("  ✗ ", "bad"),
        text,
        Cell(text_value, "dim"),
        when,
        Cell(f"; {rejection}", "warns"),
    )


declare_tab(
    JobTab(
        "questions",
        "Questions and answers of a job.",
        questions,
        number_key="5",
        short="Q&A",
        selectable=True,
        ticks=True,
        has_ids=True,
        count=lambda snapshot: len(snapshot.details.questions),
        shows_count=True,
        needs_attention=lambda snapshot: snapshot.open is not None,
    )
)
