"""Resolution of a text answer in a chat: which of the questions it answers, if any. Pure.

An ambiguous answer is never guessed. The bots render the resolution, and submit the response.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.errors import UsageError
from draftsman.questions.answer import ParsedAnswer, Verdict, parse_answer
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.questions.response import Response

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


class AnswerOutcome(StrEnum):
    """Outcomes of a resolution."""

    SUBMIT = "submit"
    """The first question is answered."""
    AMBIGUOUS = "ambiguous"
    """The text may answer any of the questions."""
    NO_TEXT = "no_text"
    """A file without text, which answers nothing."""
    WRONG_KIND = "wrong_kind"
    """The first question needs the other kind of answer."""
    CLOSED = "closed"
    """The questions are closed."""
    NOT_AN_ANSWER = "not_an_answer"


@dataclass(frozen=True, slots=True)
class AnswerResolution:
    """The outcome, its questions, and the decision; without a decision the text is the answer."""

    outcome: AnswerOutcome
    questions: Sequence[Question] = ()
    decision: ApprovalDecision | None = None


def resolve_answer(
    text: str | None,
    decision: ApprovalDecision | None,
    questions: Sequence[Question],
    *,
    prefer_text: bool,
) -> AnswerResolution:
    """Resolve a text, and the decision that it contains, among the questions of a conversation.

    The text is None for a file. With `prefer_text`, a question that accepts the text comes before
    other questions, and before a decision if there is no approval.
    """
    open_questions = [question for question in questions if question.status is QuestionStatus.OPEN]
    if not open_questions:
        closed = _of_kind(questions, decision)
        outcome = AnswerOutcome.CLOSED if closed else AnswerOutcome.NOT_AN_ANSWER
        return AnswerResolution(outcome, closed, decision)
    accepting = accepting_questions(open_questions, text or "") if prefer_text else []
    if accepting and not any(question.kind is QuestionKind.APPROVAL for question in questions):
        decision = None
    candidates = _of_kind(open_questions, decision)
    if not candidates:
        return AnswerResolution(AnswerOutcome.WRONG_KIND, open_questions, decision)
    if text is None:
        return AnswerResolution(AnswerOutcome.NO_TEXT, candidates, decision)
    if decision is None and accepting:
        candidates = accepting
    outcome = AnswerOutcome.SUBMIT if len(candidates) == 1 else AnswerOutcome.AMBIGUOUS
    return AnswerResolution(outcome, candidates, decision)


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


def build_response(key: str, question: str = "", **fields: Any) -> Response:
    """Return a response with its idempotency key; raises UsageError for invalid fields.

    `question` is the name that the error begins with.
    """
    try:
        return Response(source_event_id=key, **fields)
    except ValidationError as error:
        name, problem = field_errors.first_error(error)
        prefix = f"{question}: " if question else ""
        raise UsageError(f"{prefix}the {name or 'answer'} {problem}") from None


def is_shown_by_question(verdict: Verdict) -> bool:
    """Return whether the question's own message shows the verdict."""
    return verdict.accepted and (verdict.resolved or verdict.duplicate)


def _of_kind(questions: Sequence[Question], decision: ApprovalDecision | None) -> list[Question]:
    kind = QuestionKind.INPUT if decision is None else QuestionKind.APPROVAL
    return [question for question in questions if question.kind is kind]


def _parse(question: Question, text: str) -> ParsedAnswer | None:
    if question.kind is not QuestionKind.INPUT:
        return None
    try:
        return parse_answer(question, build_response("text", text=text))
    except UsageError:
        return None
