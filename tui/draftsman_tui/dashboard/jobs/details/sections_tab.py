"""Tabs of the job screen that show sections of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.jobs.details.sections.related import GROUP
from draftsman.jobs.details.sections.runs import EARLIER_STEPS, is_empty_patch
from draftsman.questions.question import QuestionKind
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, Render, declare_tab

LIST: Final[dict[str, Any]] = {"selectable": True, "has_ids": True}
"""Tabs whose items can be selected, and have ids of their own."""


def _no_keys(snapshot: JobSnapshot, name: str) -> str:
    return ""


def _declare(
    name: str,
    help: str,
    sections: Sequence[str],
    empty: str,
    *,
    keys_of: Callable[[JobSnapshot, str], str] = _no_keys,
    titled: bool = True,
    spaced: bool = False,
    wraps: bool = True,
    **fields: Any,
) -> Render:
    """Declare a tab, and return what renders it.

    `empty` follows the name of a job without items, and `keys_of` gives the keys for an entry. The
    layout is that of `section_items`, and `fields` are those of the tab.
    """

    def items(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
        hint = partial(keys_of, snapshot)
        layout = {"titled": titled, "spaced": spaced, "wraps": wraps}
        shown = section_items(snapshot, width, now, *sections, hint=hint, **layout)
        yet = "" if snapshot.over else " yet"
        return shown or [note(f"{snapshot.job.name} {empty.format(yet=yet)}", width)]

    declare_tab(JobTab(name, help, items, **fields))
    return items


def _question_keys(snapshot: JobSnapshot, name: str) -> str:
    for question in snapshot.open_questions:
        if question.name == name:
            verb = "decide" if question.kind is QuestionKind.APPROVAL else "answer"
            return f"a: {verb}   e: extend"
    return ""


def _dead_letters(snapshot: JobSnapshot) -> set[str]:
    return {
        str(delivery.seq)
        for delivery in snapshot.details.deliveries
        if delivery.status is DeliveryStatus.DEAD_LETTER
    }


timeline: Final = _declare(
    "timeline",
    "Events of a job.",
    ("events",),
    "has no events yet",
    titled=False,
    wraps=False,
    number_key="1",
    short="time",
    selectable=True,
    follows=True,
    has_chart=True,
)
_declare(
    "request",
    "Facts and request of a job.",
    ("state", "facts", "request", "joined", "attachments", "messages"),
    "has no request",
    number_key="2",
)
questions: Final = _declare(
    "questions",
    "Questions and answers of a job.",
    ("questions",),
    "has no questions",
    keys_of=_question_keys,
    titled=False,
    spaced=True,
    number_key="5",
    short="Q&A",
    ticks=True,
    count=lambda snapshot: len(snapshot.details.questions),
    shows_count=True,
    needs_attention=lambda snapshot: snapshot.open is not None,
    **LIST,
)
_declare(
    "deliveries",
    "Deliveries of a job.",
    ("deliveries",),
    "has no notification targets. To set them: draftsman submit --notify log …",
    keys_of=lambda snapshot, seq: "R: resend" if seq in _dead_letters(snapshot) else "",
    titled=False,
    number_key="6",
    short="deliv",
    ticks=True,
    count=lambda snapshot: len(snapshot.details.deliveries),
    shows_count=True,
    needs_attention=lambda snapshot: bool(_dead_letters(snapshot)),
    **LIST,
)
_declare(
    "runs",
    "Runs of a job, its steps and checkpoints.",
    ("runs", "steps", "checkpoints"),
    "has no runs{yet}",
    keys_of=lambda _, name: "enter: show them" if name == EARLIER_STEPS else "",
    number_key="7",
    ticks=True,
    has_chart=True,
    count=lambda snapshot: len(snapshot.details.runs),
    shows_count=True,
    **LIST,
)
_declare(
    "related",
    "Retries, parents and children of a job, and its group.",
    ("retries", "group", "parents", "children"),
    "has no retries, parents, children or group",
    keys_of=lambda _, name: "enter: its jobs" if name.startswith(GROUP) else "",
    number_key="9",
    **LIST,
)
_declare(
    "artifacts",
    "Files and result of a job.",
    ("result", "artifacts"),
    "has no files{yet}",
    number_key="0",
    short="files",
    selectable=True,
    count=lambda snapshot: (
        bool(snapshot.job.result)
        + sum(not is_empty_patch(file) for file in snapshot.details.artifacts)
    ),
    shows_count=True,
)
