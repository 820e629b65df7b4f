"""Resolution of text answers."""

from __future__ import annotations

import pytest

from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_bots.conversation.answers import (
    AnswerOutcome,
    ApprovalDecision,
    parse_decision,
    resolve_answer,
)
from tests.core.deliveries.channels import channel_contract
from tests.support.cases import cases

FREE = channel_contract.question(ordinal=1, choices=[], freeform_allowed=True)
CHOICE = channel_contract.question(
    ordinal=2, choices=[{"value": "approve", "label": "approve"}], freeform_allowed=False
)
APPROVAL = channel_contract.question(ordinal=3, kind=QuestionKind.APPROVAL, choices=[])
CLOSED = channel_contract.question(
    ordinal=4, status=QuestionStatus.ANSWERED, choices=[], freeform_allowed=True
)
APPROVE = ApprovalDecision(approved=True)


@pytest.mark.parametrize(
    ("text", "questions", "outcome", "ordinals"),
    [
        ("red", [FREE], AnswerOutcome.SUBMIT, [1]),
        ("red", [FREE, CLOSED], AnswerOutcome.SUBMIT, [1]),
        ("approve", [APPROVAL, FREE], AnswerOutcome.SUBMIT, [3]),
        ("approve", [APPROVAL], AnswerOutcome.SUBMIT, [3]),
        ("red", [APPROVAL], AnswerOutcome.WRONG_KIND, [3]),
        (None, [FREE], AnswerOutcome.NO_TEXT, [1]),
        ("red", [CLOSED], AnswerOutcome.CLOSED, [4]),
        ("approve", [CLOSED], AnswerOutcome.NOT_AN_ANSWER, []),
        ("red", [], AnswerOutcome.NOT_AN_ANSWER, []),
    ],
)
@pytest.mark.parametrize("prefer_text", [False, True])
def test_text_is_resolved_among_the_questions(
    text: str | None,
    questions: list[Question],
    outcome: AnswerOutcome,
    ordinals: list[int],
    prefer_text: bool,
) -> None:
    decision = parse_decision(text or "")
    result = resolve_answer(text, decision, questions, prefer_text=prefer_text)
    assert result.outcome is outcome
    assert [question.ordinal for question in result.questions] == ordinals
    assert result.decision == decision


@cases(
    ("text", "questions", "prefer_text", "outcome", "ordinals", "decision"),
    [
        ("approve", [CHOICE], True, AnswerOutcome.SUBMIT, [2], None),
        ("approve", [CHOICE], False, AnswerOutcome.WRONG_KIND, [2], APPROVE),
        ("approve", [CHOICE, APPROVAL], True, AnswerOutcome.SUBMIT, [3], APPROVE),
        ("red", [FREE, CHOICE], True, AnswerOutcome.SUBMIT, [1], None),
        ("red", [FREE, CHOICE], False, AnswerOutcome.AMBIGUOUS, [1, 2], None),
        ("approve", [FREE, CHOICE], True, AnswerOutcome.AMBIGUOUS, [1, 2], None),
    ],
)
def test_preferred_text_comes_before_a_decision_without_an_approval(
    text: str,
    questions: list[Question],
    prefer_text: bool,
    outcome: AnswerOutcome,
    ordinals: list[int],
    decision: ApprovalDecision | None,
) -> None:
    result = resolve_answer(text, parse_decision(text), questions, prefer_text=prefer_text)
    assert (result.outcome, result.decision) == (outcome, decision)
    assert [question.ordinal for question in result.questions] == ordinals


@cases(
    ("text", "decision"),
    [
        (" Approve\n", ApprovalDecision(approved=True)),
        ("deny", ApprovalDecision(approved=False)),
        ("deny \n not\nnow ", ApprovalDecision(approved=False, reason="not\nnow")),
        ("denying", None),
        ("approve it", None),
        ("", None),
    ],
)
def test_only_a_whole_text_is_a_decision(text: str, decision: ApprovalDecision | None) -> None:
    assert parse_decision(text) == decision
