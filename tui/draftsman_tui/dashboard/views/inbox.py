"""Inbox: open questions, soonest deadline first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from draftsman.domain.messages.action_text import action_text
from draftsman.domain.question import OpenQuestion, QuestionKind
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import FilterFields
from draftsman_tui.dashboard.polling.attention import responders_of
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows, page

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

_NEVER = datetime.max.replace(tzinfo=UTC)


class InboxResource(Resource[OpenQuestion]):
    """Open questions and approvals."""

    name = "inbox"
    help = "Open questions and approvals, soonest deadline first."
    statuses = tuple(map(str, QuestionKind))
    fields = ("status", "repo", "by", "agent", "for", "age")
    empty = "No open questions."
    columns = (
        Column[OpenQuestion]("QUESTION", 11, order=lambda row: (row.job, row.ordinal)),
        Column[OpenQuestion]("TITLE", 20, most=40, order=lambda row: row.title),
        Column[OpenQuestion]("TEXT", 0, order=lambda row: row.text),
        Column[OpenQuestion]("KIND", 8, from_width=100, order=lambda row: row.kind),
        Column[OpenQuestion]("REPO", 14, most=24, from_width=120, order=lambda row: row.repo or ""),
        Column[OpenQuestion]("BY", 12, most=20, from_width=130, order=lambda row: row.requester),
        Column[OpenQuestion]("CHOICES", 24, from_width=140),
        Column[OpenQuestion]("AGENT", 12, from_width=170, order=lambda row: row.agent or ""),
        Column[OpenQuestion]("FOR", 16, from_width=170),
        Column[OpenQuestion]("ASKED", 6, right=True, order=lambda row: row.asked_at),
        Column[OpenQuestion]("EXPIRES", 10, order=lambda row: row.expires_at or _NEVER),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[OpenQuestion]:
        questions = await rt.questions.open(limit=query.limit, after=query.before)
        return page(questions, query.limit, lambda row: (row.expires_at, row.job, row.ordinal))

    def key(self, row: OpenQuestion) -> str:
        return row.name

    def job(self, row: OpenQuestion) -> int:
        return row.job

    def question(self, row: OpenQuestion) -> tuple[int, int]:
        return row.job, row.ordinal

    def item(self, row: OpenQuestion) -> tuple[str, str | None]:
        return "questions", row.name

    def cells(self, row: OpenQuestion, now: datetime) -> Sequence[Cell]:
        is_approval = row.kind is QuestionKind.APPROVAL
        choices = "approve, deny" if is_approval else ", ".join(row.labels())
        return (
            Cell(row.name, "key"),
            cells.text(row.title),
            cells.text(_request_text(row)),
            Cell("approval" if is_approval else "question", "asks"),
            cells.text(row.repo),
            cells.text(row.requester),
            cells.text(choices or "free text"),
            cells.text(row.agent),
            cells.text(", ".join(row.approvers)),
            cells.age(row.asked_at, now),
            cells.left(row.expires_at, now),
        )

    def filter_fields(self, row: OpenQuestion) -> FilterFields:
        details = (row.title, row.repo, row.requester, row.agent)
        text = f"{row.name} {row.kind} {_request_text(row)} {' '.join(row.labels())} "
        return FilterFields(
            text + " ".join(filter(None, details)),
            str(row.kind),
            repo=row.repo or "",
            by=row.requester,
            agent=row.agent or "",
            at=row.asked_at,
            responders=responders_of(row),
        )


def _request_text(row: OpenQuestion) -> str:
    """Return the question, and the action that an approval allows."""
    action = row.approved_action
    return f"{row.text} → {action_text(action)}" if action else row.text
