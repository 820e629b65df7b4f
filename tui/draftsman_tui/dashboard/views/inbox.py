"""The inbox: open questions, those that expire soonest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from draftsman.domain.messages.action_text import action_text
from draftsman.domain.question import OpenQuestion, QuestionKind
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import ANYBODY, FilterFields
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows, page

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

_NEVER = datetime.max.replace(tzinfo=UTC)


class InboxResource(Resource[OpenQuestion]):
    """What waits for a person."""

    name = "inbox"
    help = "Open questions, those that expire soonest first."
    statuses = tuple(map(str, QuestionKind))
    fields = ("status", "repo", "by", "agent", "for", "age")
    empty = "Nothing waits for a person."
    columns = (
        Column[OpenQuestion]("QUESTION", 11, order=lambda asked: (asked.job, asked.ordinal)),
        Column[OpenQuestion]("TITLE", 20, most=40, order=lambda asked: asked.title),
        Column[OpenQuestion]("ASKS", 0, order=lambda asked: asked.text),
        Column[OpenQuestion]("KIND", 8, from_width=100, order=lambda asked: asked.kind),
        Column[OpenQuestion]("REPO", 14, most=24, from_width=120, order=lambda row: row.repo or ""),
        Column[OpenQuestion]("BY", 12, most=20, from_width=130, order=lambda row: row.requester),
        Column[OpenQuestion]("CHOICES", 24, from_width=140),
        Column[OpenQuestion]("AGENT", 12, from_width=170, order=lambda row: row.agent or ""),
        Column[OpenQuestion]("FOR", 16, from_width=170),
        Column[OpenQuestion]("ASKED", 6, right=True, order=lambda asked: asked.asked_at),
        Column[OpenQuestion]("EXPIRES", 10, order=lambda asked: asked.expires_at or _NEVER),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[OpenQuestion]:
        """Return a page of the open questions."""
        found = await rt.questions.open(limit=query.limit, after=query.before)
        return page(found, query.limit, lambda row: (row.expires_at, row.job, row.ordinal))

    def key(self, row: OpenQuestion) -> str:
        """Return `D-142/2`."""
        return row.name

    def job(self, row: OpenQuestion) -> int:
        """Return the job that asks."""
        return row.job

    def question(self, row: OpenQuestion) -> tuple[int, int]:
        """Return the question itself."""
        return row.job, row.ordinal

    def item(self, row: OpenQuestion) -> tuple[str, str | None]:
        """Lead to the question."""
        return "questions", row.name

    def cells(self, row: OpenQuestion, now: datetime) -> Sequence[Cell]:
        """Return what is asked and how long there is."""
        gate = row.kind is QuestionKind.APPROVAL
        said = "approve, deny" if gate else ", ".join(row.labels())
        return (
            Cell(row.name, "key"),
            cells.text(row.title),
            cells.text(_asks(row)),
            Cell("approval" if gate else "question", "asks"),
            cells.text(row.repo),
            cells.text(row.requester),
            cells.text(said or "free text"),
            cells.text(row.agent),
            cells.text(", ".join(row.approvers)),
            cells.age(row.asked_at, now),
            cells.left(row.expires_at, now),
        )

    def filter_fields(self, row: OpenQuestion) -> FilterFields:
        """Return what a filter looks at."""
        about = (row.title, row.repo, row.requester, row.agent)
        said = f"{row.name} {row.kind} {_asks(row)} {' '.join(row.labels())} "
        gate = row.kind is QuestionKind.APPROVAL
        asked = tuple(row.approvers) or (() if gate else (ANYBODY,))
        return FilterFields(
            said + " ".join(filter(None, about)),
            str(row.kind),
            repo=row.repo or "",
            by=row.requester,
            agent=row.agent or "",
            at=row.asked_at,
            asked=asked,
        )


def _asks(row: OpenQuestion) -> str:
    """Return the question, and what an approval allows."""
    return f"{row.text} → {action_text(row.action)}" if row.action else row.text
