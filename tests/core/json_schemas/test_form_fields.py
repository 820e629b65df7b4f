"""The fields of a form: their inputs, and the values of what people enter."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from draftsman.json_schemas.form_fields import FormField, Input, entered_values, form_fields
from draftsman.json_schemas.parameter_schema import ParameterSchema
from tests.support.cases import cases


def field(schema: dict[str, Any]) -> FormField:
    (only,) = form_fields(ParameterSchema({"properties": {"x": schema}}))
    return only


@cases(
    ("schema", "expected"),
    [
        ({"type": "string"}, Input.TEXT),
        ({"type": ["string", "integer"]}, Input.TEXT),
        ({}, Input.TEXT),
        ({"type": ["integer", "null"]}, Input.NUMBER),
        ({"type": "number"}, Input.NUMBER),
        ({"type": "boolean"}, Input.BOOLEAN),
        ({"enum": ["a", 7]}, Input.CHOICE),
        ({"const": "a"}, Input.CHOICE),
        ({"enum": ["1", 1]}, Input.JSON),
        ({"enum": ["#1"]}, Input.TEXT),
        ({"type": "array", "items": {"enum": ["a"]}}, Input.CHOICES),
        ({"type": "array"}, Input.JSON),
        ({"type": "object"}, Input.JSON),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, Input.JSON),
    ],
)
def test_each_schema_has_its_input(schema: dict[str, Any], expected: Input) -> None:
    assert field(schema).input is expected


@cases(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "  7 ", "  7 "),
        ({"type": "integer"}, " 007 ", 7),
        ({"type": "number"}, "7.50", 7.5),
        ({"type": "boolean"}, "false", False),
        ({"enum": ["minor", 7]}, "#1", 7),
        ({"enum": ["minor", 7]}, " 7 ", 7),
        ({"type": "array", "items": {"enum": ["a,b", "c"]}}, "#0,#1", ["a,b", "c"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, " a , b ", ["a", "b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '["a"]', ["a"]),
        ({"type": "array"}, " a, b c,", ["a", "b c"]),
        ({"type": "array"}, '["a,b"]', ["a,b"]),
        ({"type": "array"}, "[a", "[a"),
        ({"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7", 7),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, '"7"', "7"),
        ({}, "7", "7"),
        # The schema says what is wrong with these.
        ({"type": "integer"}, "seven", "seven"),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "object"}, "{", "{"),
        ({"type": "object"}, '{"a": NaN}', '{"a": NaN}'),
        ({"type": "boolean"}, "maybe", "maybe"),
        ({"enum": ["a"]}, "#1", "#1"),
        ({"enum": ["a"]}, "b", "b"),
        ({"type": "array", "items": {"enum": ["a"]}}, "#0,#9", "#0,#9"),
    ],
)
def test_a_text_is_a_value_of_the_schema_or_stays_a_text(
    schema: dict[str, Any], text: str, value: Any
) -> None:
    only = field(schema)
    result = entered_values([only], {only.id: text})["x"]
    assert (result, type(result)) == (value, type(value))


def test_a_field_that_is_left_empty_has_no_value() -> None:
    assert entered_values([field({"type": "string"})], {"parameter:0": ""}) == {}
    assert entered_values([field({"type": "boolean"})], {"parameter:0": "unset"}) == {}
    assert entered_values([field({"type": "boolean"})], {}) == {}


def test_required_fields_come_first() -> None:
    inputs = ParameterSchema({"properties": {"a": {}, "b": {}}, "required": ["b"]})
    assert [(each.name, each.id) for each in form_fields(inputs)] == [
        ("b", "parameter:1"),
        ("a", "parameter:0"),
    ]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])
SCHEMAS = st.fixed_dictionaries({}, optional={"type": KINDS, "enum": st.lists(SCALARS)})


@given(SCHEMAS, st.text())
def test_any_text_has_a_value(schema: dict[str, Any], text: str) -> None:
    json.dumps(field(schema).value(text))


@given(st.lists(SCALARS, min_size=1))
def test_a_choice_is_entered_as_it_is_shown(choices: list[Any]) -> None:
    only = field({"enum": choices})
    for choice in choices if only.input is Input.CHOICE else ():
        value = only.value(only.text(choice))
        assert json.dumps(value) == json.dumps(choice)
