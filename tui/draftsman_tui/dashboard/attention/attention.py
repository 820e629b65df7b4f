"""Questions that wait for the user: their number, and those that are new."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.entities.filter_values import ANYBODY, ME
from draftsman.events.event import Event
from draftsman.jobs.job import WAITING
from draftsman.questions.question import OpenQuestion, QuestionKind
from draftsman_tui.dashboard.frame.connection import Connection

MAX_READ: Final = 1000
"""Open questions among which new ones are found."""
MIN_INTERVAL: Final = 1.0
"""Seconds between two counts."""
HELD_INTERVAL: Final = 30.0
"""Seconds between two counts while people hold questions: the end of a hold has no event."""
OTHER_KINDS: Final = frozenset(
    {
        "question_escalated",
        "answer_received",
        "question_acknowledged",
        "question_unacknowledged",
        "question_delegated",
    }
)
"""Events that change the questions of a user without a transition of the job."""


@dataclass(frozen=True, slots=True)
class AttentionCount:
    """Open questions: all, and those that wait for the user."""

    open: int
    mine: int
    new: Sequence[OpenQuestion] = ()
    """Questions for the user that the count before did not have; none in the first."""


def responders_of(question: OpenQuestion) -> tuple[str, ...]:
    """Return the people and groups that an open question waits for, and `ME` for the viewer.

    While a person works on the answer or was asked for it, these are its holders. A question that
    the viewer decided keeps its place until the decision takes effect.
    """
    return (*_named(question), *[ME] * (question.for_viewer or question.decided_by_viewer))


def _named(question: OpenQuestion) -> tuple[str, ...]:
    if question.holders:
        return question.holders
    if question.approvers:
        return tuple(question.approvers)
    return () if question.kind is QuestionKind.APPROVAL else (ANYBODY,)


class AttentionPoller:
    """Counts the questions of a user after events that may change them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._previous_names: frozenset[str] | None = None
        """Names of the questions for the user in the previous count."""
        self._is_due = True
        self._is_held = False
        self._read_at = -MIN_INTERVAL

    async def poll(self, events: Sequence[Event]) -> AttentionCount | None:
        """Return the count if the events may have changed it, at most once a second."""
        self._is_due = self._is_due or any(map(_may_change_questions, events))
        interval = MIN_INTERVAL if self._is_due else HELD_INTERVAL
        due = self._is_due or self._is_held
        if not due or time.monotonic() - self._read_at < interval:
            return None
        actor = self._connection.actor
        rt = self._connection.rt
        questions = await rt.questions.open(limit=MAX_READ, fold_for=actor)
        counts = await rt.questions.counts(actor)
        self._is_due = False
        self._read_at = time.monotonic()
        self._is_held = any(question.holders for question in questions)
        mine = [question for question in questions if question.for_viewer]
        names = frozenset(question.name for question in mine)
        new_names = frozenset() if self._previous_names is None else names - self._previous_names
        self._previous_names = names
        return AttentionCount(
            open=counts.open,
            mine=counts.for_you,
            new=tuple(question for question in mine if question.name in new_names),
        )


def _may_change_questions(event: Event) -> bool:
    return event.to_status in WAITING or event.from_status in WAITING or event.kind in OTHER_KINDS
