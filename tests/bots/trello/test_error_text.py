"""Text of errors in comments."""

from __future__ import annotations

import pytest

from draftsman.errors import CommandHint, Hint, OptionHint, Refused, UsageError
from draftsman.questions.answer import check_kind
from draftsman.questions.question import QuestionKind
from draftsman.questions.response import Response
from draftsman_bots.trello.deliveries.error_text import error_text
from draftsman_testing.channel.samples import question
from tests.support.cases import cases


@cases(
    ("hint", "end"),
    [
        (None, ""),
        (CommandHint("answer", lead="use"), "; comment the number of a choice, or /answer"),
        (CommandHint("artifacts", "D-7"), "; in a terminal: draftsman artifacts D-7"),
        (OptionHint("again"), "; use --again"),
    ],
)
def test_a_hint_is_worded_for_a_card(hint: Hint | None, end: str) -> None:
    error = Refused("is closed", subject="D-7/2", hint=hint)
    text = error_text(error)
    assert text.startswith("D-7/2 is closed")
    assert text.removeprefix("D-7/2 is closed").startswith(end)


def test_a_wrong_kind_of_answer_names_the_comment_that_decides() -> None:
    approval = question(kind=QuestionKind.APPROVAL, choices=[])
    with pytest.raises(UsageError) as caught:
        check_kind(approval, Response(source_event_id="x", text="yes"))
    text = error_text(caught.value)
    assert text.endswith("; comment approve, or deny and a reason")
    assert "draftsman" not in text
