"""Mapping between questions of handlers and stored questions."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.questions.question import Answered, NoAnswer, Question, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec


def build_ask(**fields: Any) -> QuestionSpec:
    """Return the question; raises UsageError."""
    try:
        return QuestionSpec(**fields)
    except ValidationError as error:
        raise field_errors.field_error(error, f"question {fields.get('key')!r}") from None


def to_answer(question: Question) -> Answered | NoAnswer | None:
    """Return the answer to a question for its handler; None while the question is open."""
    resolution = question.resolution
    if resolution is None or question.status is QuestionStatus.CANCELED:
        return None
    if question.status is QuestionStatus.EXPIRED:
        return NoAnswer()
    return Answered(
        value=resolution.get("value"),
        text=resolution.get("text"),
        outcome=resolution["outcome"],
        via=resolution["via"],
        by=tuple(resolution.get("by", ())),
        reason=resolution.get("reason"),
        at=question.answered_at,
    )
