"""Parsing of answers: choices, free text, votes."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from draftsman.errors import UsageError
from draftsman.questions.answer import (
    NoSuchChoice,
    as_text,
    check_kind,
    fails_job,
    interpret,
    parse_answer,
    tally,
)
from draftsman.questions.answer_kind import AnswerKind
from draftsman.questions.choice_matching import matching_key, normalize_value
from draftsman.questions.question import (
    BUDGET_KEY,
    Decision,
    OnDeny,
    OnExpire,
    Question,
    QuestionKind,
    QuestionStatus,
    Resolution,
)
from draftsman.questions.question_spec import Choice
from draftsman.questions.response import Response, build_response
from draftsman.text import clean
from tests.support.cases import cases

VOTERS = st.lists(st.text(min_size=1, max_size=5), max_size=8, unique=True)
TEXTS = st.text(min_size=1, max_size=20).map(clean)
VALUES = st.lists(
    TEXTS.map(normalize_value).filter(bool), min_size=1, max_size=8, unique_by=matching_key
)
"""Values of choices as questions store them: normalized, each once."""
WORDS = st.text(
    "äöß Áñ\u0133é\u2177\uff2d²\ufb01AZ\u0130\u0131\u03c2\u03a3", min_size=1, max_size=12
)
"""Texts whose letters have several widths, cases and compositions."""


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


def _response(text: str | None = None, *, decision: Decision | None = None) -> Response:
    return Response(source_event_id="e", text=text, decision=decision)


@given(VALUES, st.data())
def test_the_value_of_a_choice_selects_that_choice(values: list[str], data: st.DataObject) -> None:
    """A button sends the value; names and positions of other choices do not matter."""
    value = data.draw(st.sampled_from(values))
    parsed = parse_answer(_question(values), _response(value))
    assert (parsed.value, parsed.text) == (value, None)


@given(VALUES, st.data())
def test_a_control_chooses_by_number_whatever_the_values_are(
    values: list[str], data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, len(values) + 1))
    response = Response(source_event_id="e", text="", choice=number)
    if number <= len(values):
        assert parse_answer(_question(values), response).value == values[number - 1]
        return
    closed = replace(_question(values), status=QuestionStatus.ANSWERED)
    for question in (_question(values), closed):
        with pytest.raises(UsageError, match="D-7/2 has no such choice; use its buttons"):
            interpret(question, response)


@given(VALUES, st.text(max_size=30))
def test_a_parsed_answer_is_either_a_choice_or_free_text(values: list[str], text: str) -> None:
    for freeform in (False, True):
        try:
            parsed = parse_answer(_question(values, freeform=freeform), _response(text))
        except NoSuchChoice as error:
            question = _question(values, freeform=freeform)
            parsed = parse_answer(question, _response(as_text(question, error.text)))
            refused = parsed.text != error.text
        except UsageError:
            refused = True
        else:
            refused = False
            assert (parsed.value is None) != (parsed.text is None)
            assert parsed.value is None or parsed.value in values
        assert not refused or not freeform or not text.strip()


@given(VALUES, st.data(), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]), st.booleans())
def test_a_value_matches_in_each_composition_and_case(
    values: list[str], data: st.DataObject, form: Any, shout: bool
) -> None:
    value = data.draw(st.sampled_from(values))
    typed = unicodedata.normalize(form, value)
    typed = typed.upper() if shout and matching_key(typed.upper()) == matching_key(value) else typed
    assert parse_answer(_question(values), _response(f" {typed} ")).value == value


@given(VALUES, st.data(), st.sampled_from([".", ")", "!", "!!", " .", "\uff0e", "\uff01"]))
def test_a_value_matches_with_a_stop_at_its_end_unless_two_do(
    values: list[str], data: st.DataObject, ending: str
) -> None:
    value = data.draw(st.sampled_from(values))
    same = [item for item in values if _bare(item) == _bare(value)]
    numbers = [str(number) for number in range(1, len(values) + 1)]
    if not _bare(value) or len(same) > 1 or _bare(value) in numbers:
        return
    if matching_key(value + ending) in map(matching_key, [*values, *numbers]):
        return
    assert parse_answer(_question(values), _response(value + ending)).value == value


def _bare(text: str) -> str:
    return matching_key(text).rstrip(".)! ")


@given(st.integers(1, 8), st.sampled_from(["", ".", ")", ". ", "\uff0e"]), st.booleans())
def test_a_number_selects_a_choice_however_it_is_written(
    number: int, ending: str, wide: bool
) -> None:
    text = str(number).translate(
        str.maketrans("12345678", "\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18")
        if wide
        else {}
    )
    values = [f"choice {letter}" for letter in "abcdefgh"]
    assert parse_answer(_question(values), _response(text + ending)).value == values[number - 1]


@given(WORDS | TEXTS)
def test_a_value_and_its_key_are_stable(text: str) -> None:
    value = normalize_value(text)
    assert normalize_value(value) == value
    assert matching_key(value) == matching_key(text)
    assert matching_key(matching_key(text)) == matching_key(text)


@cases(
    ("values", "text", "value"),
    [
        (["Málaga", "Cádiz"], unicodedata.normalize("NFD", "málaga"), "Málaga"),
        (["yes", "no"], "Yes.", "yes"),
        (["yes", "no"], "NO!!", "no"),
        (["a", "b"], "2)", "b"),
        (["a", "b"], "\uff12\uff0e", "b"),
        (["a.", "a!"], "a!", "a!"),
        (["a.", "a!", "b"], "2", "a!"),
        (["c", "C++", "2."], "2.", "2."),
        (["Straße", "x"], "STRASSE", "Straße"),
        (["fine", "x"], "\ufb01ne", "fine"),
    ],
)
def test_an_answer_matches_as_people_type_it(values: list[str], text: str, value: str) -> None:
    for freeform in (False, True):
        parsed = parse_answer(_question(values, freeform=freeform), _response(text))
        assert (parsed.value, parsed.text) == (value, None)


@cases(
    ("values", "text"),
    [(["a", "b"], "..."), (["a", "b"], "a b"), (["a"], "1000")],
)
def test_an_answer_that_is_no_choice_is_refused(values: list[str], text: str) -> None:
    with pytest.raises(UsageError, match="is not a choice"):
        parse_answer(_question(values), _response(text))
    assert parse_answer(_question(values, freeform=True), _response(text)).text == text


@pytest.mark.parametrize("number", ["0", "4", "7.", "999)"])
def test_a_number_that_no_choice_has_is_a_text_only_in_quotes(number: str) -> None:
    values = ["a", "b", "c"]
    with pytest.raises(UsageError, match="is not a choice; choose: 1 a, 2 b, 3 c"):
        parse_answer(_question(values), _response(number))
    question = _question(values, freeform=True)
    with pytest.raises(NoSuchChoice) as refused:
        parse_answer(question, _response(number))
    quoted = as_text(question, number)
    assert f"there is no choice {number}; choose: 1 a, 2 b, 3 c; for" in str(refused.value)
    assert f"write {quoted}, with the quotes" in str(refused.value)
    for text in quoted, f"\u201c{number}\u201d", f"\u201e{number}\u201c":
        assert parse_answer(question, _response(text)).text == number
    assert parse_answer(question, _response('"2"')).text == "2"
    assert parse_answer(_question(values), _response('"2"')).value == "b"


REGIONS = ["Europe", "United States", "asia", "zone 1"]


@cases(
    ("text", "meant"),
    [
        ("Eruope", "Europe"),
        ("United State", "United States"),
        ("eur", "Europe"),
        ("ASAI!", "asia"),
        ("e", "Europe"),
    ],
)
def test_a_mistyped_choice_is_a_text_only_in_quotes(text: str, meant: str) -> None:
    question = _question(REGIONS, freeform=True)
    with pytest.raises(NoSuchChoice) as refused:
        parse_answer(question, _response(text))
    assert f"{text!r} is not a choice; did you mean {meant}? for" in str(refused.value)
    quoted = as_text(question, text)
    assert quoted == f'"{text}"'
    for written in quoted, f"\u201c{text}\u201d":
        assert parse_answer(question, _response(written)).text == text
    with pytest.raises(UsageError, match="is not a choice; choose: 1 Europe"):
        parse_answer(_question(REGIONS), _response(text))


def test_an_answer_that_may_be_several_choices_names_them() -> None:
    with pytest.raises(NoSuchChoice, match=r"did you mean a\. or a!\?"):
        parse_answer(_question(["a.", "a!"], freeform=True), _response("a"))


@pytest.mark.parametrize("text", ["Africa", "us", "zone 2", "Europe and asia", "the eu", "ai"])
def test_a_text_unlike_the_choices_is_free_text(text: str) -> None:
    question = _question(REGIONS, freeform=True)
    assert as_text(question, text) == text
    assert parse_answer(question, _response(text)).text == text


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ([], {}),
        (["3", "5"], {}),
        (["a"], {"answer_kind": AnswerKind.INTEGER}),
        (["stop"], {"key": BUDGET_KEY}),
    ],
    ids=["no choices", "numbers", "a number is asked", "an amount is asked"],
)
def test_a_number_is_a_free_answer_where_it_cannot_be_a_mistyped_choice(
    values: list[str], more: dict[str, Any]
) -> None:
    question = replace(_question(values, freeform=True), **more)
    assert parse_answer(question, _response("7")).text == "7"


def test_a_label_of_two_choices_selects_neither() -> None:
    long = "x" * 80
    with pytest.raises(UsageError, match="is not a choice"):
        parse_answer(_question([f"{long}1", f"{long}2"]), _response("x" * 75))


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
        (["a"], _response(decision=Decision.APPROVE), False),
        ([], _response(decision=Decision.DENY), True),
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


@given(VOTERS.filter(bool), st.integers(1, 9))
def test_an_approval_is_approved_at_its_quorum(voters: list[str], quorum: int) -> None:
    resolution = tally(_question([], quorum=quorum), Decision.APPROVE, voters[-1], voters[:-1])
    if len(voters) >= quorum:
        assert resolution == Resolution("approved", "person", by=tuple(voters))
    else:
        assert resolution is None


@given(VOTERS, st.integers(1, 9), st.text(min_size=1))
def test_a_single_denial_or_request_for_changes_decides(
    voters: list[str], quorum: int, denier: str
) -> None:
    for decision, outcome in (
        (Decision.DENY, "denied"),
        (Decision.REQUEST_CHANGES, "changes_requested"),
    ):
        resolution = tally(_question([], quorum=quorum), decision, denier, voters)
        assert resolution == Resolution(outcome, "person", by=(denier,))


@cases("on_deny", OnDeny)
@cases("outcome", ["approved", "denied", "answered", "expired"])
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


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"decision": "request_changes"}, "D-1/2: a request for changes needs a text or a comment"),
        ({"decision": "approve", "reason": "x" * 5000}, "D-1/2: the reason has more than"),
        ({"text": 3}, "D-1/2: the text must be text"),
    ],
)
def test_an_invalid_response_is_named_once(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        build_response("key", "D-1/2", **fields)
    assert str(raised.value).startswith(problem)
