"""Between what a handler asks and what is kept of it. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.domain.question import Answered, NoAnswer, Question, QuestionSpec, QuestionStatus
from draftsman.errors import UsageError


def build_ask(**fields: Any) -> QuestionSpec:
    """Return the question; raises UsageError in one line."""
    try:
        return QuestionSpec(**fields)
    except ValidationError as error:
        where, message = field_errors.first_error(error)
        raise UsageError(f"question {fields.get('key')!r}: {where} {message}".strip()) from None


def to_answer(question: Question) -> Answered | NoAnswer | None:
    """Return what a question's resolution means to the handler; None while it is open."""
    found = question.resolution
    if found is None or question.status is QuestionStatus.CANCELED:
        return None
    if question.status is QuestionStatus.EXPIRED:
        return NoAnswer()
    return Answered(
        value=found.get("value"),
        text=found.get("text"),
        outcome=found["outcome"],
        via=found["via"],
        by=tuple(found.get("by", ())),
        reason=found.get("reason"),
        at=question.answered_at,
    )
