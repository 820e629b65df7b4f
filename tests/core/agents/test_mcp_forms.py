"""Forms of MCP servers: a server gets the values that it listed, however draftsman stores them."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from draftsman.agents.mcp_forms import (
    DECLINE,
    MAX_VALUE,
    InputQuestion,
    form_content,
    form_questions,
    matching_key,
)
from draftsman.questions import choice_matching
from draftsman.questions.question_spec import QuestionSpec
from draftsman.text import clean

TEXTS = st.text(min_size=1, max_size=40).map(clean)


def test_a_value_comes_back_as_the_server_listed_it() -> None:
    listed = ["m² ", unicodedata.normalize("NFD", "Málaga"), "x" * 200]
    params = {"message": "Which?", "requestedSchema": {"properties": {"unit": {"enum": listed}}}}
    questions = form_questions(params)
    assert questions is not None
    stored = [choice["value"] for choice in questions[0].choices]
    assert stored == ["m2", "Málaga", "x" * MAX_VALUE, DECLINE]
    for value, own in zip(stored, listed, strict=False):
        assert form_content(params, {"unit": value}) == {"unit": own}
    assert form_content(params, {"unit": DECLINE}) is None


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_choices_of_a_tool_are_those_of_a_question(values: list[str]) -> None:
    asked = InputQuestion.of("unit", "Which?", [(value, "") for value in values])
    spec = QuestionSpec.model_validate(
        {"key": "k", "text": "?", "freeform": True, "choices": asked.choices}
    )
    assert [choice.value for choice in spec.choices] == [item["value"] for item in asked.choices]


@given(TEXTS)
def test_both_sides_take_the_same_choices_for_equal(text: str) -> None:
    assert matching_key(text) == choice_matching.matching_key(choice_matching.normalize_value(text))
