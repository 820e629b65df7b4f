"""Validation of questions."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import Choice, QuestionSpec
from tests.support.cases import cases

GATE = {"key": "k", "kind": "approval", "text": "?"}
PLAIN = {"key": "k", "text": "?", "choices": ["a", "b"]}


@cases(
    ("item", "complaint"),
    [
        ({"key": "k", "text": "?"}, "needs choices, or freeform=True, or both"),
        (PLAIN | {"choices": ["a", "A"]}, "two choices have the same value"),
        (PLAIN | {"choices": ["\uff21", "a "]}, "two choices have the same value"),
        (PLAIN | {"choices": ["Málaga", "Ma\u0301laga"]}, "two choices have the same value"),
        (PLAIN | {"choices": [""]}, "at least 1 character"),
        (PLAIN | {"choices": [" \u00a0"]}, "at least 1 character"),
        (PLAIN | {"choices": ["\ufdfa" * 10]}, "at most 150 characters"),
        (PLAIN | {"choices": ["x" * 151]}, "at most 150 characters"),
        (PLAIN | {"choices": [{"value": "a", "label": "x" * 151}]}, "at most 150 characters"),
        (PLAIN | {"choices": [str(n) for n in range(501)]}, "at most 500 items"),
        (PLAIN | {"choices": [{"value": "a", "color": "red"}]}, "Extra inputs"),
        (PLAIN | {"key": ""}, "at least 1 character"),
        (PLAIN | {"key": "x" * 201}, "at most 200 characters"),
        (PLAIN | {"text": ""}, "at least 1 character"),
        (PLAIN | {"text": "x" * 3001}, "at most 3000 characters"),
        (PLAIN | {"expires_in": 0}, "greater than 0"),
        (PLAIN | {"expires_in": -5}, "greater than 0"),
        (PLAIN | {"expires_in": 1e30}, "less than or equal"),
        (PLAIN | {"expires_in": float("nan")}, "expires_in"),
        (PLAIN | {"on_expire": "default"}, "a default requires on_expire='default'"),
        (PLAIN | {"default": "a"}, "a default requires on_expire='default'"),
        (PLAIN | {"on_expire": "default", "default": "c"}, "'c' is not among the choices"),
        (PLAIN | {"on_expire": "deny"}, "'expire', 'default', 'continue' or 'escalate'"),
        (PLAIN | {"urgent": True}, "Extra inputs"),
        (GATE | {"choices": ["a"]}, "an approval takes approve or deny"),
        (GATE | {"freeform": True}, "an approval takes approve or deny"),
        (PLAIN | {"escalate_to": "leads"}, "escalate_to requires"),
        (GATE | {"escalate_to": "leads"}, "escalate_to requires"),
        (GATE | {"on_expire": "continue"}, "an approval takes approve or deny"),
        (GATE | {"on_expire": "default", "default": "a"}, "an approval takes approve or deny"),
        (GATE | {"quorum": 0}, "greater than or equal to 1"),
        (GATE | {"quorum": 21}, "less than or equal to 20"),
    ],
)
def test_an_inconsistent_question_is_refused(item: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        QuestionSpec.model_validate(item)


@cases(
    "item",
    [
        PLAIN,
        PLAIN | {"freeform": True},
        {"key": "k", "text": "?", "freeform": True},
        PLAIN | {"on_expire": "default", "default": "b"},
        PLAIN | {"freeform": True, "on_expire": "default", "default": "c"},
        PLAIN | {"on_expire": "continue"},
        PLAIN | {"on_expire": "escalate"},
        GATE | {"on_expire": "escalate", "escalate_to": "leads"},
        GATE,
        GATE | {"quorum": 3, "approvers": ["carol"], "on_deny": "continue", "action": {"a": 1}},
    ],
    ids=str,
)
def test_a_consistent_question_is_accepted(item: dict[str, Any]) -> None:
    assert QuestionSpec.model_validate(item).key == "k"


def test_a_choice_may_be_given_as_its_value_alone() -> None:
    assert Choice.model_validate("a") == Choice(value="a", label="a")
    assert Choice.model_validate("x" * 150).label == "x" * 150
    assert Choice.model_validate({"value": "a", "label": ""}).label == "a"


def test_values_are_stored_normalized_and_a_default_is_that_of_its_choice() -> None:
    item = QuestionSpec.model_validate(
        PLAIN
        | {"choices": [" Ma\u0301laga ", "m²"], "on_expire": "default", "default": "Ma\u0301laga"}
    )
    assert [choice.value for choice in item.choices] == ["Málaga", "m2"]
    assert [choice.label for choice in item.choices] == ["Ma\u0301laga", "m²"]
    assert item.default == "Málaga"
    free = PLAIN | {"freeform": True, "on_expire": "default", "default": " m\u00b3 "}
    assert QuestionSpec.model_validate(free).default == " m\u00b3 "


def test_an_expired_approval_is_denied_unless_the_handler_continues() -> None:
    assert QuestionSpec.model_validate(GATE).on_deny == "fail"
    assert QuestionSpec.model_validate(GATE).kind is QuestionKind.APPROVAL
