"""Decisions in texts."""

from __future__ import annotations

from draftsman.questions.question import Decision
from draftsman_bots.conversation.answers import ApprovalDecision, is_decision_word, parse_decision
from tests.support.cases import cases


@cases(
    ("text", "decision"),
    [
        (" Approve\n", ApprovalDecision(Decision.APPROVE)),
        ("deny", ApprovalDecision(Decision.DENY)),
        ("deny \n not\nnow ", ApprovalDecision(Decision.DENY, reason="not\nnow")),
        ("denying", None),
        ("approve it", None),
        ("", None),
    ],
)
def test_only_a_whole_text_is_a_decision(text: str, decision: ApprovalDecision | None) -> None:
    assert parse_decision(text) == decision


@cases(
    "text",
    [
        "improve",
        "done",
        "many",
        "ready",
        "prove it",
        "apple",
        "penny",
        "approach",
        "I approve",
        "approve? no",
    ],
)
def test_other_words_are_no_mistyped_decision(text: str) -> None:
    assert not is_decision_word(text)
