"""Questions tab: questions, approvals and answers."""

from __future__ import annotations

from datetime import datetime

from draftsman.questions.question import QuestionKind
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def questions(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each question, in order, with the keys for those that are open."""
    verbs = {
        question.name: "decide" if question.kind is QuestionKind.APPROVAL else "answer"
        for question in snapshot.open_questions
    }
    items = section_items(
        snapshot,
        width,
        now,
        "questions",
        titled=False,
        spaced=True,
        hint=lambda name: f"a: {verbs[name]}   e: extend" if name in verbs else "",
    )
    return items or [note(f"{snapshot.job.name} has no questions", width)]


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
