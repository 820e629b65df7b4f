"""Decisions and answers in texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.errors import UsageError
from draftsman.questions.answer import ParsedAnswer, parse_answer
from draftsman.questions.question import Question, QuestionKind
from draftsman.questions.response import build_response

_DENY: Final = re.compile(r"deny(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A decision on an approval, with the reason of a denial."""

    approved: bool
    reason: str | None = None

    @property
    def verb(self) -> str:
        """The command of the decision."""
        return "approve" if self.approved else "deny"


def parse_decision(text: str) -> ApprovalDecision | None:
    """Parse exactly `approve`, or `deny` with an optional reason."""
    text = text.strip()
    if text.casefold() == "approve":
        return ApprovalDecision(approved=True)
    if match := _DENY.fullmatch(text):
        return ApprovalDecision(approved=False, reason=(match[1] or "").strip() or None)
    return None


def accepting_questions(questions: Sequence[Question], text: str) -> list[Question]:
    """Return the questions that accept this text: as a choice, or as free text."""
    return [question for question in questions if _parse(question, text) is not None]


def names_choice(question: Question, text: str) -> bool:
    """Return whether a text names a choice of the question."""
    answer = _parse(question, text)
    return answer is not None and answer.value is not None


def _parse(question: Question, text: str) -> ParsedAnswer | None:
    if question.kind is not QuestionKind.INPUT:
        return None
    try:
        return parse_answer(question, build_response("text", text=text))
    except UsageError:
        return None
