"""The inbox of open questions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.question_text import approvals_text, holder_text
from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.jobs.details.sections import questions as sections
from draftsman.jobs.details.sections.section import Reader, plain
from draftsman.questions.question import OpenQuestion, Question, QuestionKind

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def deadline_text(question: Question, now: datetime) -> str:
    """Describe the deadline and the outcome without an answer."""
    return plain(sections.deadline(question, Reader(now)))


def pending_text(question: Question, now: datetime) -> str:
    """Describe an answer or a decision that can still be undone; "" without one."""
    return plain(sections.pending(question, Reader(now)))


def summary_text(row: OpenQuestion) -> str:
    """Return the action that an approval allows, in words, and the question."""
    action = row.approved_action
    changed = f", +{row.added or 0} -{row.removed or 0}" if row.added or row.removed else ""
    return f"{action_text(action)}{changed} · {row.text}" if action else f"{row.text}{changed}"


def _jobs(row: OpenQuestion) -> str:
    """Return how many jobs ask the same; "" for a single job."""
    return f"{len(row.others) + 1} jobs" if row.others else ""


def _by(row: OpenQuestion) -> str:
    """Return the requester, and the number of further requesters of the same question."""
    further = {*row.other_requesters} - {row.requester}
    return f"{row.requester} +{len(further)}" if further else row.requester


def _about(row: OpenQuestion, now: datetime) -> Cell:
    states = (pending_text(row, now), approvals_text(row), holder_text(row))
    return cells.text(" · ".join(filter(None, (*states, _jobs(row), summary_text(row)))))


def _choices(row: OpenQuestion) -> str:
    return ", ".join(row.decisions or row.labels()) or row.free_answer


def _data(question: Question) -> dict[str, Any]:
    from draftsman.deliveries.documents.json import question_json

    return question_json(question)


INBOX: Final[ListedEntity[OpenQuestion]] = ListedEntity(
    empty="no open questions",
    data=_data,
    json_class="draftsman.questions.question:OpenQuestion",
    json_more={"name": {"type": "string"}, "hint": {"type": "string"}, "attention": {}},
    listing=Listing(
        "inbox",
        "Open questions and approvals, the first to expire first.",
        read=lambda rt, limit: rt.questions.open(limit=limit),
        key=lambda row: row.name,
        opens=lambda row: row.name,
    ),
    searched=lambda row: row.repo or "",
    columns=(
        Column(
            "QUESTION",
            9,
            help="Name of the question.",
            cell=lambda row, _: Cell(row.name, "key"),
            most=12,
            order=lambda row: (row.job, row.ordinal),
        ),
        Column(
            "KIND",
            8,
            help="Its kind.",
            cell=lambda row, _: Cell(
                "approval" if row.kind is QuestionKind.APPROVAL else "question", "asks"
            ),
            most=12,
            order=lambda row: row.kind,
        ),
        Column(
            "ABOUT",
            help="Who works on it, and what is asked.",
            cell=_about,
            cut=True,
            order=lambda row: row.text,
        ),
        shared_columns.text(
            "TITLE",
            14,
            help="Title of the job, or its type.",
            of=lambda row: row.title,
            most=40,
            from_width=100,
            below="ABOUT",
        ),
        shared_columns.repo(
            lambda row: (row.repo or "").rpartition("/")[2],
            width=12,
            most=24,
            from_width=84,
            below="QUESTION",
        ),
        replace(shared_columns.by(_by, from_width=84), width=8, most=20, below="KIND"),
        Column(
            "CHOICES",
            16,
            help="Its choices.",
            cell=lambda row, _: cells.text(_choices(row)),
            most=30,
            from_width=170,
        ),
        shared_columns.text(
            "AGENT", 12, help="Its agent.", of=lambda row: row.agent, from_width=170
        ),
        Column(
            "FOR",
            12,
            help="Who may decide it.",
            cell=lambda row, _: cells.text(", ".join(row.approvers)),
            most=20,
            from_width=160,
        ),
        Column(
            "WAITS",
            6,
            help="Time since it was asked.",
            cell=lambda row, now: cells.age(row.asked_at, now),
            right=True,
            order=lambda row: row.asked_at,
            measure=Measure.TIME,
        ),
        Column(
            "EXPIRES",
            10,
            help="When it expires or expired.",
            cell=lambda row, now: cells.until(row.expires_at, now),
            order=lambda row: row.expires_at or _NEVER,
            measure=Measure.TIME,
        ),
    ),
)
