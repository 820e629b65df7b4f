"""Inbox: open questions, those of the user first, then by deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from draftsman.entities.filter_values import ME
from draftsman.entities.questions import INBOX, summary_text
from draftsman.questions.question import OpenQuestion, QuestionKind
from draftsman.runtime import Runtime
from draftsman.text import first_line
from draftsman_tui.dashboard.attention.attention import responders_of
from draftsman_tui.dashboard.tables.filter import NOTHING, Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource, Query, Rows, page

FOR_ME: Final = Filter(responders=(ME,))


class InboxResource(ListedResource[OpenQuestion]):
    """Open questions and approvals."""

    number_key = "2"
    help = "Open questions and approvals: those for you first, then by deadline."
    kinds = tuple(map(str, QuestionKind))
    fields = ("status", "repo", "by", "agent", "for", "job", "age")
    has_jobs = True
    has_questions = True
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {
        "repository": lambda row: row.repo or "",
        "person": lambda row: row.requester,
        "question": lambda row: _same_question(row),
    }
    two_lines_below = 140
    entity = INBOX

    async def read(self, rt: Runtime, query: Query) -> Rows[OpenQuestion]:
        viewer = query.viewer
        if query.jobs is not None:
            asked = await rt.questions.open_of(query.jobs)
            return Rows(asked if viewer is None else rt.questions.marked(asked, viewer))
        questions = await rt.questions.open(limit=query.limit, after=query.before, fold_for=viewer)
        rows = page(questions, query.limit, lambda row: (row.expires_at, row.job, row.ordinal))
        if viewer is None or query.filter not in (NOTHING, FOR_ME):
            return rows
        counts = await rt.questions.counts(viewer)
        return replace(rows, total=counts.for_you if query.filter else counts.open)

    def is_first(self, row: OpenQuestion) -> bool:
        """Return whether it waits for the user, or did until they decided it."""
        return ME in responders_of(row)

    def question(self, row: OpenQuestion) -> tuple[int, int]:
        return row.job, row.ordinal

    def jobs(self, row: OpenQuestion) -> Sequence[int]:
        """Return the job of the row, and those that ask the same."""
        return (row.job, *row.others)

    def item(self, row: OpenQuestion) -> tuple[str, str | None]:
        return "questions", row.name

    def counted(self, rows: Sequence[OpenQuestion], plus: str) -> str:
        jobs = {job for row in rows for job in self.jobs(row)}
        return f"{len(jobs)}{plus} jobs" if len(jobs) > len(rows) else ""

    def filter_fields(self, row: OpenQuestion) -> FilterFields:
        details = (row.title, row.repo, row.requester, row.agent, *row.other_requesters)
        text = f"{row.name} {row.kind} {summary_text(row)} {' '.join(row.labels())} "
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


def _same_question(row: OpenQuestion) -> str:
    """Return a label that equal questions of several jobs have."""
    choices = f" [{', '.join(row.labels())}]" if row.choices else ""
    return f"{first_line(row.text, 80)}{choices}"
