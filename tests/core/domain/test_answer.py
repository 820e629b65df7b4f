"""Parsing of answers: choices, free text, votes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from draftsman.domain.answer import check_kind, fails_job, parse_answer, tally
from draftsman.domain.question import (
    OnDeny,
    OnExpire,
    Question,
    QuestionKind,
    QuestionStatus,
    Resolution,
)
from draftsman.domain.question_spec import Choice
from draftsman.domain.response import Response
from draftsman.domain.text import clean
from draftsman.errors import UsageError
from tests.support.cases import cases

VOTERS = st.lists(st.text(min_size=1, max_size=5), max_size=8, unique=True)
VALUES = st.lists(
    st.text(min_size=1, max_size=20).map(clean).map(str.strip).filter(bool),
    min_size=1,
    max_size=8,
    unique_by=str.casefold,
)
"""Values of choices as questions store them: cleaned, each once."""


def _question(
    values: list[str], *, freeform: bool = False, quorum: int = 1, on_deny: OnDeny = OnDeny.FAIL
) -> Question:
    choices = [Choice.model_validate(value).model_dump() for value in values]
    kind = QuestionKind.INPUT if values or freeform else QuestionKind.APPROVAL
    now = datetime.now(UTC)
    return Question(
        7,
        2,
        1,
        "key",
        kind,
        QuestionStatus.OPEN,
        "text",
        choices,
        freeform,
        None,
        [],
        quorum,
        OnExpire.EXPIRE,
        None,
        on_deny,
        "digest",
        None,
        None,
        now,
        None,
        None,
    )


def _response(text: str | None = None, *, decision: bool | None = None) -> Response:
    return Response(source_event_id="e", text=text, decision=decision)


@given(VALUES, st.data())
def test_the_value_of_a_choice_selects_that_choice(values: list[str], data: st.DataObject) -> None:
    """A button sends the value; names and positions of other choices do not matter."""
    value = data.draw(st.sampled_from(values))
    parsed = parse_answer(_question(values), _response(value))
    assert (parsed.value, parsed.text) == (value, None)


@given(VALUES, st.text(max_size=30))
def test_a_parsed_answer_is_either_a_choice_or_free_text(values: list[str], text: str) -> None:
    for freeform in (False, True):
        try:
            parsed = parse_answer(_question(values, freeform=freeform), _response(text))
        except UsageError:
            refused = True
        else:
            refused = False
            assert (parsed.value is None) != (parsed.text is None)
            assert parsed.value is None or parsed.value in values
        assert not refused or not freeform or not text.strip()


def test_a_number_is_a_position_unless_a_choice_has_that_value() -> None:
    assert parse_answer(_question(["b", "a"]), _response("2")).value == "a"
    assert parse_answer(_question(["3", "2", "1"]), _response("1")).value == "1"
    with pytest.raises(UsageError, match="choose: 1 b, 2 a"):
        parse_answer(_question(["b", "a"]), _response("3"))


def test_a_refusal_mentions_free_text_only_if_it_is_allowed() -> None:
    with pytest.raises(UsageError, match="choose: 1 b; or enter free text"):
        parse_answer(_question(["b"], freeform=True), _response(" "))
    with pytest.raises(UsageError, match="enter free text"):
        parse_answer(_question([], freeform=True), _response(None))


@cases(
    ("values", "response", "good"),
    [
        (["a"], _response("a"), True),
        (["a"], _response(decision=True), False),
        ([], _response(decision=False), True),
        ([], _response("approve"), False),
        ([], _response(None), False),
    ],
)
def test_a_response_of_another_kind_than_the_question_is_refused(
    values: list[str], response: Response, good: bool
) -> None:
    if good:
        check_kind(_question(values), response)
    else:
        with pytest.raises(UsageError, match="D-7/2"):
            check_kind(_question(values), response)


@given(VOTERS, st.integers(1, 9))
def test_an_approval_is_approved_at_its_quorum(voters: list[str], quorum: int) -> None:
    resolution = tally(_question([], quorum=quorum), voters, None)
    if len(voters) >= quorum:
        assert resolution == Resolution("approved", "person", by=tuple(voters))
    else:
        assert resolution is None


@given(VOTERS, st.integers(1, 9), st.text(min_size=1))
def test_a_single_denial_decides(voters: list[str], quorum: int, denier: str) -> None:
    resolution = tally(_question([], quorum=quorum), voters, denier)
    assert resolution == Resolution("denied", "person", by=(denier,))


@pytest.mark.parametrize("on_deny", OnDeny)
@pytest.mark.parametrize("outcome", ["approved", "denied", "answered", "expired"])
def test_a_denial_fails_the_job_unless_the_handler_continues(on_deny: OnDeny, outcome: str) -> None:
    question = _question([], on_deny=on_deny)
    expected = outcome == "denied" and on_deny is OnDeny.FAIL
    assert fails_job(question, Resolution(outcome, "person")) is expected


@cases(
    "fields",
    [
        {},
        {"source_event_id": ""},
        {"source_event_id": "e", "text": "x" * 20_001},
        {"source_event_id": "e", "reason": "x" * 3001},
        {"source_event_id": "e", "vote": 1},
    ],
    ids=["nothing", "no event", "long text", "long reason", "unknown"],
)
def test_a_response_without_an_event_or_over_a_limit_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Response.model_validate(fields)


def test_a_resolution_stores_only_set_fields() -> None:
    assert Resolution("expired", "system").as_json() == {"outcome": "expired", "via": "system"}
    full = Resolution("approved", "person", "v", "t", ("a", "b"), "r", self_approved=True)
    assert full.as_json() == {
        "outcome": "approved",
        "via": "person",
        "value": "v",
        "text": "t",
        "reason": "r",
        "by": ["a", "b"],
        "self_approved": True,
    }
