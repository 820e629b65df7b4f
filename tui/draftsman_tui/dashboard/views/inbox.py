"""The inbox: open questions, those that expire soonest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from draftsman.domain.question import Question, QuestionKind
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import ANYBODY, Facts
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows, page

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

_NEVER = datetime.max.replace(tzinfo=UTC)


class Inbox(Resource[Question]):
    """What waits for a person."""

    name = "inbox"
    help = "Open questions, those that expire soonest first."
    statuses = tuple(map(str, QuestionKind))
    fields = ("status", "for", "age")
    empty = "Nothing waits for a person."
    columns = (
        Column[Question]("QUESTION", 11, order=lambda asked: (asked.job, asked.ordinal)),
        Column[Question]("KIND", 8, order=lambda asked: asked.kind),
        Column[Question]("ASKS", 0, order=lambda asked: asked.text),
        Column[Question]("CHOICES", 24, from_width=110),
        Column[Question]("FOR", 16, from_width=130),
        Column[Question]("ASKED", 6, right=True, order=lambda asked: asked.asked_at),
        Column[Question]("EXPIRES", 10, order=lambda asked: asked.expires_at or _NEVER),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Question]:
        """Return a page of the open questions."""
        found = await rt.questions.open(limit=query.limit, after=query.before)
        return page(found, query.limit, lambda row: (row.expires_at, row.job, row.ordinal))

    def key(self, row: Question) -> str:
        """Return `D-142/2`."""
        return row.name

    def job(self, row: Question) -> int:
        """Return the job that asks."""
        return row.job

    def question(self, row: Question) -> tuple[int, int]:
        """Return the question itself."""
        return row.job, row.ordinal

    def item(self, row: Question) -> tuple[str, str | None]:
        """Lead to the question."""
        return "questions", row.name

    def cells(self, row: Question, now: datetime) -> Sequence[Cell]:
        """Return what is asked and how long there is."""
        gate = row.kind is QuestionKind.APPROVAL
        said = "approve, deny" if gate else ", ".join(row.labels())
        return (
            Cell(row.name, "key"),
            Cell("approval" if gate else "question", "asks"),
            cells.text(row.text),
            cells.text(said or "your own words"),
            cells.text(", ".join(row.approvers)),
            cells.age(row.asked_at, now),
            cells.left(row.expires_at, now),
        )

    def facts(self, row: Question) -> Facts:
        """Return what a filter looks at."""
        said = f"{row.name} {row.kind} {row.text} {' '.join(row.labels())}"
        gate = row.kind is QuestionKind.APPROVAL
        asked = tuple(row.approvers) or (() if gate else (ANYBODY,))
        return Facts(said, str(row.kind), at=row.asked_at, asked=asked)
