"""JSON of other services."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.received_json import MAX_DEPTH, read_object
from tests.support.cases import cases

DEEP = "[" * 200_000


@cases("raw", ["", "[]", '"a"', "{", b"\xff", DEEP], ids=range(6))
def test_text_without_an_object_parses_to_none(raw: str | bytes) -> None:
    assert read_object(raw) is None


def test_only_strict_parsing_refuses_nan() -> None:
    assert read_object('{"a": NaN}', strict=True) is None
    assert read_object('{"a": NaN}') is not None


def test_an_object_has_a_limited_depth() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert read_object(nested(MAX_DEPTH)) is not None
    assert read_object(nested(MAX_DEPTH + 1)) is None


_TEXT = st.text(st.characters(blacklist_categories=[])) | st.sampled_from(["\ud800", "\U0001f3f4"])
_JSON = st.recursive(
    _TEXT | st.integers(), lambda item: st.lists(item) | st.dictionaries(_TEXT, item)
)


@given(st.dictionaries(_TEXT, _JSON))
def test_half_characters_are_replaced_and_nothing_else_is_changed(value: dict[str, object]) -> None:
    read = read_object(json.dumps(value))
    assert read is not None
    text = json.dumps(read, ensure_ascii=False)
    text.encode()
    whole = json.dumps(value, ensure_ascii=False)
    if whole == whole.encode(errors="replace").decode():
        assert read == value
