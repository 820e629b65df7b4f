"""Short facts of a question in all its messages."""

from __future__ import annotations

from dataclasses import replace

from draftsman.deliveries.question_text import question_notes
from draftsman.questions.question import OnChanges, QuestionKind
from draftsman_testing.channel import samples


def test_the_approval_of_a_merge_says_that_it_takes_no_changes() -> None:
    gate = samples.question(
        kind=QuestionKind.APPROVAL, choices=[], action={"merge": "https://x.org/1"}
    )
    refusing = replace(gate, on_changes=OnChanges.REFUSE)
    assert [*question_notes(refusing)] == [
        "a merge takes no requests for changes: deny it, and review the pull request"
    ]
    assert [*question_notes(replace(refusing, action={"push": "main"}))] == []
