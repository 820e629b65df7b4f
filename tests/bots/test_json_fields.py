"""Readers of JSON fields."""

from __future__ import annotations

from draftsman_bots import json_fields
from tests.support.cases import cases

DEEP = "[" * 200_000


@cases("raw", ["", "[]", '"a"', "{", b"\xff", DEEP], ids=range(6))
def test_text_without_an_object_parses_to_none(raw: str | bytes) -> None:
    assert json_fields.parse_object(raw) is None


def test_only_strict_parsing_refuses_nan() -> None:
    assert json_fields.parse_object('{"a": NaN}', strict=True) is None
    assert json_fields.parse_object('{"a": NaN}') is not None


def test_a_field_of_another_type_is_empty() -> None:
    data = {"text": 1, "object": [], "list": {}, "mixed": [{"a": 1}, 2, None]}
    assert json_fields.string(data, "text") == ""
    assert json_fields.nested(data, "object", "more") == {}
    assert json_fields.objects(data, "list") == []
    assert json_fields.objects(data, "mixed") == [{"a": 1}]
    assert json_fields.string(None, "text") == ""
