"""Cleaning and size limits of text and JSON for the database."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.text import (
    EVENT_LIMIT,
    capitalized,
    clean,
    clean_within_limit,
    digest,
    first_line,
    humanize,
    truncate_payload,
)
from tests.support.cases import cases

ANYTHING = st.text(st.characters(exclude_categories=[])) | st.text(
    "\x00\x01\ud800\udfffa\U0001f600"
)
"""Every code point, with lone surrogates."""
SCALARS = (
    ANYTHING
    | st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e20, max_value=1e20)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANYTHING, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(ANYTHING, JSON, max_size=6)


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


@given(ANYTHING)
def test_cleaned_text_can_be_stored_and_valid_text_is_unchanged(text: str) -> None:
    cleaned = clean(text)
    assert _is_storable(cleaned)
    assert len(cleaned) == len(text)
    if _is_storable(text):
        assert cleaned == text


@given(JSON)
def test_cleaning_reaches_nested_values_and_is_idempotent(value: Any) -> None:
    cleaned = clean(value)
    dumped = json.dumps(cleaned, ensure_ascii=False)
    dumped.encode()
    assert "\\u0000" not in dumped
    assert clean(cleaned) == cleaned


@given(OBJECTS)
def test_a_long_event_is_truncated_to_its_limit_and_marked(payload: Any) -> None:
    for limit in (100, EVENT_LIMIT):
        cut = truncate_payload(payload, limit)
        if cut != clean(payload):
            assert cut["truncated"] is True
    assert len(json.dumps(truncate_payload(payload), ensure_ascii=False).encode()) <= EVENT_LIMIT


@cases("char", ["x", "\U0001f600", "\x01", '"', "\\"])
@cases("shape", ["one long text", "many keys", "many texts", "deep"])
def test_no_event_is_over_the_limit(char: str, shape: str) -> None:
    payloads: dict[str, dict[str, Any]] = {
        "one long text": {"a": char * 100_000},
        "many keys": {f"{n}{char * 100}": n for n in range(1000)},
        "many texts": {str(n): char * 1000 for n in range(1000)},
        "deep": {"a": [{"b": char * 1000}] * 1000},
    }
    cut = truncate_payload(payloads[shape])
    assert cut["truncated"] is True
    assert len(json.dumps(cut, ensure_ascii=False).encode()) <= EVENT_LIMIT


def test_a_short_event_is_unchanged() -> None:
    assert truncate_payload({"a": [1, None, "x"]}) == {"a": [1, None, "x"]}


@given(JSON, st.integers(0, 200))
def test_a_value_over_a_limit_is_refused_and_another_is_returned_clean(
    value: Any, limit: int
) -> None:
    size = len(json.dumps(clean(value), ensure_ascii=False).encode())
    if size > limit:
        with pytest.raises(UsageError, match=f"{size:,} bytes; at most {limit:,}"):
            clean_within_limit(value, limit, "it")
    else:
        assert clean_within_limit(value, limit, "it") == clean(value)


@cases(
    "value",
    [float("nan"), float("inf"), -float("inf"), 1e300, object(), b"bytes", {1, 2}, 10**5000],
    ids=["nan", "inf", "-inf", "1e300", "object", "bytes", "set", "huge"],
)
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    for item in (value, [value], {"a": {"b": value}}):
        with pytest.raises(UsageError):
            clean_within_limit(item, 1000, "it")


def test_tuples_are_lists_and_keys_are_texts() -> None:
    assert clean({1: (1, 2)}) == {"1": [1, 2]}


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(UsageError, match="nested too deeply"):
        clean_within_limit(nested, 10**6, "it")


@given(JSON)
def test_a_digest_does_not_depend_on_the_order_of_keys(value: Any) -> None:
    def turned(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: turned(item[key]) for key in reversed(list(item))}
        return [turned(child) for child in item] if isinstance(item, list) else item

    assert digest(turned(value)) == digest(value)
    assert len(digest(value)) == 64


def test_different_values_have_different_digests() -> None:
    values = ["", None, 0, False, [], {}, "0", [0], {"a": 0}, {"a": "0"}]
    assert len({digest(value) for value in values}) == len(values)


@cases(
    ("text", "line"),
    [("", ""), ("\n \n a \n b", "a"), ("x" * 121, "x" * 119 + "…"), ("x" * 120, "x" * 120)],
)
def test_the_first_line_with_text_is_returned(text: str, line: str) -> None:
    assert first_line(text) == line


def test_a_status_is_displayed_as_words() -> None:
    assert humanize(Status.DEAD_LETTER) == "dead letter"
    assert humanize("job_retry_scheduled") == "job retry scheduled"


@cases(
    ("text", "subject", "sentence"),
    [
        ("no jobs match", "", "No jobs match"),
        ("unknown", "", "Unknown"),
        ("anna: may not approve", "anna", "anna: may not approve"),
        ("carla-of-accounts may not approve", "", "carla-of-accounts may not approve"),
        ("queue mail is paused", "queue mail", "Queue mail is paused"),
        ("cost> needs a number", "", "cost> needs a number"),
        ("choose: approve or deny", "", "Choose: approve or deny"),
        ("D-1 failed", "D-1", "D-1 failed"),
        ("", "", ""),
    ],
)
def test_a_sentence_gets_a_capital_unless_it_begins_with_a_name(
    text: str, subject: str, sentence: str
) -> None:
    assert capitalized(text, subject) == sentence
