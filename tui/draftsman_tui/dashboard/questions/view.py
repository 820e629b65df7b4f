"""Inbox: open questions, those of the user first, then by deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.plain_text import holder_text
from draftsman.questions.question import OpenQuestion, QuestionKind
from draftsman.text import first_line
from draftsman_tui.dashboard.attention.attention import responders_of
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, page, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column
from draftsman_tui.entities.questions import pending_text

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

_NEVER = datetime.max.replace(tzinfo=UTC)


@table_view
class InboxResource(Resource[OpenQuestion]):
    """Open questions and approvals."""

    name = "inbox"
    number_key = "2"
    help = "Open questions and approvals: those for you first, then by deadline."
    statuses = tuple(map(str, QuestionKind))
    fields = ("status", "repo", "by", "agent", "for", "job", "age")
    has_jobs = True
    has_questions = True
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {
        "repository": lambda row: row.repo or "",
        "person": lambda row: row.requester,
        "question": lambda row: _same_question(row),
    }
    mine_first = True
    two_lines_below = 140
    empty = "No open questions."
    columns = (
        Column[OpenQuestion]("QUESTION", 9, most=12, order=lambda row: (row.job, row.ordinal)),
        Column[OpenQuestion]("KIND", 8, most=12, order=lambda row: row.kind),
        Column[OpenQuestion]("ABOUT", 0, order=lambda row: row.text),
        Column[OpenQuestion](
            "TITLE", 14, most=40, from_width=100, order=lambda row: row.title, below="ABOUT"
        ),
        Column[OpenQuestion](
            "REPO", 12, most=24, from_width=84, order=lambda row: row.repo or "", below="QUESTION"
        ),
        Column[OpenQuestion](
            "BY", 8, most=20, from_width=84, order=lambda row: row.requester, below="KIND"
        ),
        Column[OpenQuestion]("CHOICES", 16, most=30, from_width=170),
        Column[OpenQuestion]("AGENT", 12, from_width=170, order=lambda row: row.agent or ""),
        Column[OpenQuestion]("FOR", 12, most=20, from_width=160),
        Column[OpenQuestion]("WAITS", 6, right=True, order=lambda row: row.asked_at),
        Column[OpenQuestion]("EXPIRES", 10, order=lambda row: row.expires_at or _NEVER),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[OpenQuestion]:
        if query.jobs is not None:
            return Rows(await rt.questions.open_of(query.jobs))
        questions = await rt.questions.open(
            limit=query.limit, after=query.before, fold_for=query.viewer
        )
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
            Cell("approval" if is_approval else "question", "asks"),
            cells.text(
                " · ".join(
                    filter(
                        None,
                        (pending_text(row, now), holder_text(row), _jobs(row), _summary(row)),
                    )
                )
            ),
            cells.text(row.title),
            cells.text((row.repo or "").rpartition("/")[2]),
            cells.text(_by(row)),
            cells.text(choices or "free text"),
            cells.text(row.agent),
            cells.text(", ".join(row.approvers)),
            cells.age(row.asked_at, now),
            cells.until(row.expires_at, now),
        )

    def counted(self, rows: Sequence[OpenQuestion], plus: str) -> str:
        jobs = {job for row in rows for job in (row.job, *row.others)}
        return f"{len(jobs)}{plus} jobs" if len(jobs) > len(rows) else ""

    def filter_fields(self, row: OpenQuestion) -> FilterFields:
        details = (row.title, row.repo, row.requester, row.agent, *row.other_requesters)
        text = f"{row.name} {row.kind} {_summary(row)} {' '.join(row.labels())} "
        return FilterFields(
            text + " ".join(filter(None, details)),
            str(row.kind),
            repo=row.repo or "",
            repo_host=row.repo_host or "",
            by=row.requester,
            also_by=tuple(row.other_requesters),
            agent=row.agent or "",
            at=row.asked_at,
            responders=responders_of(row),
        )


def _summary(row: OpenQuestion) -> str:
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


def _same_question(row: OpenQuestion) -> str:
    """Return a label that equal questions of several jobs have."""
    choices = f" [{', '.join(row.labels())}]" if row.choices else ""
    return f"{first_line(row.text, 80)}{choices}"
