"""Changes under review: counts, and the question to compare with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from draftsman.agent_runs.changes.review import Review, last_reviewed, renewals
from draftsman.questions.answer import Answer
from draftsman.questions.question import BUDGET_KEY, Question, QuestionKind
from draftsman_testing.channel.samples import question
from tests.support.cases import cases

PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"


@cases(
    ("review", "summary"),
    [
        (Review(None), ""),
        (Review(""), ""),
        (Review(PATCH), "1 file changed, +2 -1"),
        (Review(PATCH, "D-1/2"), "1 file changed, +2 -1; since D-1/2: no changes"),
        (
            Review(PATCH, "D-1/2", renewed=("new base commit",)),
            "1 file changed, +2 -1; since D-1/2: no changes, new base commit",
        ),
        (
            Review(PATCH, "D-1/2", PATCH),
            "1 file changed, +2 -1; since D-1/2: 1 file changed, +2 -1",
        ),
        (Review("", "D-1/2", PATCH), "no changes; since D-1/2: reverted"),
    ],
)
def test_the_summary_counts_all_changes_and_those_since_the_approval(
    review: Review, summary: str
) -> None:
    assert review.summary == summary


def test_a_new_base_and_a_new_policy_are_named() -> None:
    first, second, third = (
        asked(ordinal, kind=QuestionKind.APPROVAL, action={"on": on, "policy": policy})
        for ordinal, on, policy in ((1, "a", "p"), (2, "b", "p"), (3, "b", "q"))
    )
    assert renewals(first, second) == ("new base commit",)
    assert renewals(second, third) == ("new policy",)
    assert renewals(third, third) == renewals(asked(1), asked(2)) == ()


def asked(ordinal: int, **fields: Any) -> Question:
    return replace(question(), ordinal=ordinal, **fields)


def vote(question: int, decision: str = "approve", *, accepted: bool = True) -> Answer:
    row = (1, 1, question, "approval", "cli", "", "carol", None, "carol", {"decision": decision})
    return Answer(*row, accepted, None, datetime.now(UTC))


def test_only_approvals_and_allowed_permission_requests_approve_changes() -> None:
    gate = {"kind": QuestionKind.APPROVAL}
    answered = {"outcome": "answered"}
    asked_questions = [
        asked(1, **gate, resolution={"outcome": "approved"}),
        asked(2, **gate, resolution={"outcome": "denied"}),
        asked(3, key="permission:1", resolution=answered | {"value": "deny"}),
        asked(4, key="permission:2", resolution=answered | {"value": "allow once"}),
        asked(5, key="permission:3", resolution=answered | {"text": "not now"}),
        asked(6, key="which", resolution={"outcome": "expired"}),
        asked(7, key="which", resolution=answered | {"text": "blue"}),
        asked(8, key=BUDGET_KEY, resolution=answered | {"value": "4"}),
        asked(9),
    ]
    found = [last_reviewed(asked_questions, item.ordinal) for item in asked_questions]
    superseded = [
        asked(ordinal, **gate, quorum=2, resolution={"outcome": "superseded"})
        for ordinal in (1, 2, 3, 4)
    ]
    votes = [vote(1), vote(1), vote(2), vote(2, "deny"), vote(3), vote(3, accepted=False)]
    last = last_reviewed(superseded, 4, votes)
    assert last is not None
    assert last.ordinal == 1
    assert [item and item.ordinal for item in found] == [None, 1, 1, 1, 4, 4, 4, 4, 4]
    last = last_reviewed([*asked_questions, asked(10, **gate)], 10)
    assert last is not None
    assert last.ordinal == 1, "who allows a call has not reviewed the work"
