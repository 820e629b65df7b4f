"""Questions and answers: what was asked, who said what from where, what counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from draftsman.domain.answer import Answer
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.domain.wording import settled
from draftsman_tui.cli import times
from draftsman_tui.cli.output import one_line
from draftsman_tui.cli.questions import choices, details, heading
from draftsman_tui.dashboard.job.rows import Item, Row, lines, note, row_of, wrapped
from draftsman_tui.dashboard.job.seen import JobSeen
from draftsman_tui.dashboard.resource import Cell

_HANG = 6


def questions(seen: JobSeen, width: int, now: datetime) -> list[Item]:
    """Return an item for each question, in the order asked."""
    if not seen.questions:
        return [note(f"{seen.job.name} has asked nobody anything", width)]
    return [
        Item(one.name, tuple(row for row in _rows(one, seen, width, now))) for one in seen.questions
    ]


def _rows(asked: Question, seen: JobSeen, width: int, now: datetime) -> Iterator[Row]:
    open_ = asked.status is QuestionStatus.OPEN
    head = _open(asked, seen, now) if open_ else _closed(asked, now)
    yield from wrapped(head, width, _HANG)
    yield from lines(asked.text, width, "  ")
    for text in (*details(asked), *choices(asked)):
        yield from wrapped(row_of(text), width, _HANG)
    yield from (row for one in _said(asked, seen, now) for row in wrapped(one, width, _HANG))
    if open_:
        gate = asked.kind is QuestionKind.APPROVAL
        can = "y: approve   n: deny   e: extend" if gate else "a: answer   e: extend"
        yield (Cell(f"  {can}", "key"),)
    yield ()


def _open(asked: Question, seen: JobSeen, now: datetime) -> Row:
    return row_of(heading(asked, seen.asked.get(asked.ordinal, "nobody"), now))


def _closed(asked: Question, now: datetime) -> Row:
    kind = "approval" if asked.kind is QuestionKind.APPROVAL else "question"
    good = asked.status is QuestionStatus.ANSWERED
    when = f", {times.ago(asked.answered_at, now)}" if asked.answered_at else ""
    return (
        Cell(f"{asked.name}  ", "head"),
        Cell(f"{kind} "),
        Cell(one_line(f"{settled(asked)}{when}"), "good" if good else "warns"),
        Cell(f" · asked {times.ago(asked.asked_at, now)}", "dim"),
    )


def _said(asked: Question, seen: JobSeen, now: datetime) -> Iterator[Row]:
    """Yield what each person said, and of a gate how many have to."""
    mine = [one for one in seen.answers if one.question == asked.ordinal]
    if asked.kind is QuestionKind.APPROVAL and asked.quorum > 1:
        votes = sum(one.accepted and one.payload.get("decision") == "approve" for one in mine)
        yield (Cell(f"  {votes} of {asked.quorum} approvals", "head"),)
    for one in mine:
        yield _answer(one, now)


def _answer(one: Answer, now: datetime) -> Row:
    name = one.responder_display_name or one.voter
    who = name if one.voter == name else f"{name} as {one.voter}"
    gave = one.payload.get("decision") or one.payload.get("value") or one.payload.get("text")
    said = {"approve": "approves", "deny": "denies"}.get(str(gave), f"says {one_line(str(gave))}")
    because = f": {one_line(str(one.payload['reason']))}" if one.payload.get("reason") else ""
    where = f"({one.source}), {times.ago(one.created_at, now)}"
    text = Cell(one_line(f"{who} {where} ") + " ")
    if one.accepted:
        return (Cell("  → ", "good"), text, Cell(f"{said}{because}", "good"))
    refused = f"   refused: {one_line(one.reason or 'it does not count')}"
    return (Cell("  ✗ ", "bad"), text, Cell(f"{said}{because}", "dim"), Cell(refused, "warns"))
