"""Questions and answers: what was asked, who said what from where, what counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from draftsman.domain.answer import Answer
from draftsman.domain.messages.plain_text import resolution_text
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman_tui.common import times
from draftsman_tui.common.output import one_line
from draftsman_tui.common.question_text import choice_lines, detail_lines, heading
from draftsman_tui.dashboard.job.row_layout import Item, Row, lines, note, row_of, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell

CONTEXT: Final = 12
BRIEF: Final = 4
"""Lines of the context of an open question, and of one that is over."""
_HANG: Final = 6


def questions(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each question, in the order asked."""
    if not seen.questions:
        return [note(f"{seen.job.name} has asked nobody anything", width)]
    return [
        Item(one.name, tuple(row for row in _rows(one, seen, width, now))) for one in seen.questions
    ]


def _rows(asked: Question, seen: JobSnapshot, width: int, now: datetime) -> Iterator[Row]:
    open_ = asked.status is QuestionStatus.OPEN
    yield from wrap_row(_open(asked, seen, now) if open_ else _closed(asked, now), width, _HANG)
    yield from lines(asked.text, width, "  ")
    about = [row_of(text) for text in detail_lines(asked, CONTEXT if open_ else BRIEF, "enter")]
    can = [row_of(text) for text in choice_lines(asked)]
    said = list(_said(asked, seen, now))
    for row in [*about, *can, *said] if open_ else [*can, *said, *about]:
        yield from wrap_row(row, width, _HANG)
    if open_:
        verb = "decide" if asked.kind is QuestionKind.APPROVAL else "answer"
        yield (Cell(f"  a: {verb}   e: extend", "key"),)
    yield ()


def _open(asked: Question, seen: JobSnapshot, now: datetime) -> Row:
    return row_of(heading(asked, seen.asked.get(asked.ordinal, "nobody"), now))


def _closed(asked: Question, now: datetime) -> Row:
    kind = "approval" if asked.kind is QuestionKind.APPROVAL else "question"
    good = asked.status is QuestionStatus.ANSWERED
    when = f", {times.ago(asked.answered_at, now)}" if asked.answered_at else ""
    return (
        Cell(f"{asked.name}  ", "head"),
        Cell(f"{kind} "),
        Cell(one_line(f"{resolution_text(asked)}{when}"), "good" if good else "warns"),
        Cell(f" · asked {times.ago(asked.asked_at, now)}", "dim"),
    )


def _said(asked: Question, seen: JobSnapshot, now: datetime) -> Iterator[Row]:
    """Yield what each person said, and of a gate how many have to."""
    mine = [one for one in seen.answers if one.question == asked.ordinal]
    if asked.kind is QuestionKind.APPROVAL and asked.quorum > 1:
        votes = sum(one.accepted and one.payload.get("decision") == "approve" for one in mine)
        yield (Cell(f"  {votes} of {asked.quorum} approvals", "head"),)
    for one in mine:
        yield _answer(one, now)


def _answer(one: Answer, now: datetime) -> Row:
    name = one.responder_display_name or one.voter
    person = one.voter.rpartition(":")[2]
    who = name if person.casefold() in name.casefold() else f"{name}, as {person}"
    gave = one.payload.get("decision") or one.payload.get("value") or one.payload.get("text")
    said = {"approve": "approves", "deny": "denies"}.get(str(gave), f"says {gave}")
    because = f": {one.payload['reason']}" if one.payload.get("reason") else ""
    text = Cell(f"{one_line(f'{who} ({one.source})')} ")
    spoke = one_line(f"{said}{because}")
    when = Cell(f", {times.ago(one.created_at, now)}", "dim")
    if one.accepted:
        return (Cell("  → ", "good"), text, Cell(spoke, "good"), when)
    refused = one_line(f"refused: {one.reason or 'it does not count'}")
    return (Cell("  ✗ ", "bad"), text, Cell(spoke, "dim"), when, Cell(f"; {refused}", "warns"))
