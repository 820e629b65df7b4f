"""Readers of JSON fields."""

from __future__ import annotations

from draftsman_bots import json_fields


def test_a_field_of_another_type_is_empty() -> None:
    data = {"text": 1, "object": [], "list": {}, "mixed": [{"a": 1}, 2, None]}
    assert json_fields.string(data, "text") == ""
    assert json_fields.nested(data, "object", "more") == {}
    assert json_fields.objects(data, "list") == []
    assert json_fields.objects(data, "mixed") == [{"a": 1}]
    assert json_fields.string(None, "text") == ""
