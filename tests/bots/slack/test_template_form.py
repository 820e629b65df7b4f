"""The form of a template: an input for each parameter, within Slack's limits for any schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draftsman.errors import Refused
from draftsman.json_schemas.form_fields import entered_values, form_fields
from draftsman.schedules.job_form import JobForm
from draftsman.schedules.template import Template, TemplateDefinition
from draftsman_bots.slack import ids
from draftsman_bots.slack.payloads.payloads import ViewSubmission
from draftsman_bots.slack.requests.template_form import MAX_PARAMETERS, can_list, parameter_form
from draftsman_testing.slack.block_rules import VIEW_BYTES
from draftsman_testing.slack.block_validation import whole_view
from draftsman_testing.slack.payloads import state
from draftsman_testing.slack.world import Json
from tests.support.cases import cases

TARGET = "slack:C0GENERAL/1700000000.000100"


def definition(*required: str, defs: Json | None = None, **properties: Json) -> TemplateDefinition:
    schema: Json = {"properties": properties, "required": list(required)}
    return TemplateDefinition(
        parameters=schema | ({"$defs": defs} if defs else {}), text="Do it", description="A & B"
    )


def form(defined: TemplateDefinition) -> Json:
    """Return the form, which Slack accepts."""
    template = Template("bump", 3, defined, "olga", datetime(2026, 1, 1, tzinfo=UTC))
    return whole_view(parameter_form(JobForm(template, defined.inputs), TARGET), ("modal",))


def inputs(view: Json) -> dict[str, Json]:
    """Return the input blocks by label."""
    return {b["label"]["text"]: b for b in view["blocks"] if b["type"] == "input"}


def element(schema: Json, *, required: bool = False) -> Json:
    """Return the input of a parameter, without its action id."""
    block = inputs(form(definition(*["x"] * required, x=schema)))["x"]
    assert block["optional"] is not required
    return {name: value for name, value in block["element"].items() if name != "action_id"}


def entered(schema: Json, value: Any, **more: Any) -> Any:
    """Return the value of a parameter, after its input was filled."""
    defined = definition("x", x=schema, **more)
    values = state(form(defined)["blocks"], {"parameter:0": value})
    view = {"id": "V1", "type": "modal", "state": {"values": values}}
    submitted = ViewSubmission.model_validate({"user": {"id": "UANNA"}, "view": view})
    return read(defined, submitted.values).get("x")


def read(defined: TemplateDefinition, values: dict[str, str]) -> dict[str, Any]:
    """Return the values of a form that was submitted with these."""
    return entered_values(form_fields(defined.inputs, can_list), values)


def texts(built: Json) -> list[str]:
    return [option["text"]["text"] for option in built["options"]]


@cases(
    ("schema", "expected"),
    [
        (
            {"type": "string"},
            {"type": "plain_text_input", "multiline": False, "max_length": 3000},
        ),
        (
            {"type": "string", "minLength": 2, "maxLength": 20, "default": "abc"},
            {
                "type": "plain_text_input", "multiline": False, "max_length": 20, "min_length": 2,
                "initial_value": "abc",
            },
        ),
        (
            {"type": "string", "maxLength": 9000, "minLength": 5000},
            {"type": "plain_text_input", "multiline": True, "max_length": 3000},
        ),
        (
            {"type": "string", "format": "multiline"},
            {"type": "plain_text_input", "multiline": True, "max_length": 3000},
        ),
        (
            {"type": "string", "default": "x" * 3001},
            {"type": "plain_text_input", "multiline": False, "max_length": 3000},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "default": 7},
            {
                "type": "number_input", "is_decimal_allowed": False,
                "min_value": "1", "max_value": "9", "initial_value": "7",
            },
        ),
        (
            {"type": ["number", "null"], "minimum": 1e-7, "maximum": 0.5},
            {
                "type": "number_input", "is_decimal_allowed": True,
                "min_value": "0.0000001", "max_value": "0.5",
            },
        ),
        ({"type": "object"}, {"type": "plain_text_input", "multiline": True, "max_length": 3000}),
        (
            {"type": "array", "default": ["a"]},
            {
                "type": "plain_text_input", "multiline": True, "max_length": 3000,
                "initial_value": '["a"]',
            },
        ),
    ],
)  # fmt: skip
def test_each_type_has_its_input(schema: Json, expected: Json) -> None:
    assert element(schema) == expected


def test_flags_are_radio_buttons() -> None:
    assert texts(element({"type": "boolean"}, required=True)) == ["Yes", "No"]
    assert "initial_option" not in element({"type": "boolean"}, required=True)
    optional = element({"type": "boolean"})
    assert (texts(optional), optional["initial_option"]) == (
        ["Yes", "No", "Not set"], optional["options"][2],
    )  # fmt: skip
    preset = element({"type": "boolean", "default": False})
    assert (texts(preset), preset["initial_option"]) == (["Yes", "No"], preset["options"][1])


def test_choices_are_a_select_up_to_its_limits() -> None:
    built = element({"enum": ["minor", 7, None, True], "default": 7})
    assert (built["type"], texts(built)) == ("static_select", ["minor", "7", "null", "true"])
    assert built["initial_option"]["text"]["text"] == "7"
    for enum, kind in (
        ([f"choice {n}" for n in range(100)], "static_select"),
        ([f"choice {n}" for n in range(101)], "plain_text_input"),
        (["x" * 75], "static_select"),
        (["x" * 76], "plain_text_input"),
        ([""], "plain_text_input"),
        (["1", 1], "plain_text_input"),
        (["#1", "a"], "plain_text_input"),
        ([], "plain_text_input"),
    ):
        assert element({"enum": enum})["type"] == kind


def test_lists_of_choices_are_checkboxes_or_a_select_of_several() -> None:
    few = element({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b", "other"]})
    assert (few["type"], [o["text"]["text"] for o in few["initial_options"]]) == (
        "checkboxes", ["b"],
    )  # fmt: skip
    many = element({"type": "array", "items": {"enum": [str(n) for n in range(11)]}})
    assert many["type"] == "multi_static_select"


def test_local_references_are_followed() -> None:
    defs = {"level": {"enum": ["minor", "major"], "description": "How much"}}
    built = inputs(form(definition(defs=defs, x={"$ref": "#/$defs/level", "title": "Level"})))
    assert texts(built["Level"]["element"]) == ["minor", "major"]
    assert built["Level"]["hint"]["text"] == "How much"
    for reference in ("#/$defs/none", "https://example.org/", "#/properties/x"):
        assert element({"$ref": reference})["type"] == "plain_text_input"


@cases(
    ("schema", "filled", "value"),
    [
        ({"type": "string"}, "  7 ", "  7 "),
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "7.50", 7.5),
        ({"type": "boolean"}, "true", True),
        ({"enum": ["minor", 7]}, "#1", 7),
        ({"type": "array", "items": {"enum": ["a,b", "c"]}}, ["#0", "#1"], ["a,b", "c"]),
        ({"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
        ({"enum": ["1", 1]}, "1", 1),
        ({"enum": [str(n) for n in range(101)]}, "7", "7"),
        ({"type": "string"}, "", None),
    ],
)
def test_values_have_the_types_of_their_schemas(schema: Json, filled: Any, value: Any) -> None:
    result = entered(schema, filled)
    assert (result, type(result)) == (value, type(value))


def test_required_parameters_come_first_and_the_form_names_its_template() -> None:
    view = form(definition("b", a={"type": "string"}, b={"type": "string"}))
    assert list(inputs(view)) == ["b", "a"]
    assert [block["block_id"] for block in inputs(view).values()] == ["parameter:1", "parameter:0"]
    assert ids.parse_form(view["private_metadata"]) == ("template/bump@3", TARGET, None)
    assert view["blocks"][0]["elements"][0]["text"] == "A &amp; B"


@cases(("count", "shown", "note"), [(98, 98, 0), (99, 98, 1), (300, 98, 1)])
def test_a_form_has_at_most_a_hundred_blocks(count: int, shown: int, note: int) -> None:
    view = form(definition("p9", **{f"p{n}": {"type": "string"} for n in range(count)}))
    assert (len(inputs(view)), len(view["blocks"])) == (shown, shown + 1 + note)
    assert next(iter(inputs(view))) == "p9"
    if note:
        assert view["blocks"][-1]["elements"][0]["text"] == (
            f"{count - shown} more parameters keep their defaults."
        )


def test_more_required_parameters_than_a_form_has_are_refused() -> None:
    names = [f"p{n}" for n in range(MAX_PARAMETERS + 1)]
    with pytest.raises(Refused, match="draftsman templates run bump"):
        form(definition(*names, **{name: {"type": "string"} for name in names}))


@cases(
    "schema",
    [
        {"enum": [f"{n} " + "\U0001f600" * 30 for n in range(25)]},
        {"type": "string", "default": "\U0001f600" * 1200, "description": "ü" * 600},
        {"type": "array", "items": {"enum": ["\n" * 70 + str(n) for n in range(60)]}},
    ],
)
def test_a_form_that_is_too_large_has_plain_inputs(schema: Json) -> None:
    names = [f"p{n}" for n in range(98)]
    view = form(definition(**{name: schema | {"title": "\U0001f600" * 100} for name in names}))
    assert len(json.dumps(view).encode()) <= VIEW_BYTES
    assert len([block for block in view["blocks"] if block["type"] == "input"]) == 98


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=90)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(), SCALARS, max_size=2)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(("string", "integer", "number", "boolean", "array", "object"))
        | st.just(["string", "null"])
        | VALUES,
        "enum": st.lists(SCALARS, max_size=120) | VALUES,
        "items": st.fixed_dictionaries({"enum": st.lists(SCALARS, max_size=12)}) | VALUES,
        **{
            name: st.integers(-10, 4000) | st.floats() | VALUES
            for name in (
                "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
                "maxLength", "default", "title", "description", "format", "const", "$ref",
            )
        },
    },
)  # fmt: skip


@given(st.dictionaries(st.from_regex(r"[A-Za-z_]{1,300}", fullmatch=True), SCHEMAS, max_size=5))
@example({"above": {"type": "integer", "default": 0, "maximum": -1}})
@example({"none": {"type": "number", "minimum": 2, "maximum": 1}})
def test_any_schema_makes_a_form_that_slack_accepts(properties: dict[str, Json]) -> None:
    defined = TemplateDefinition.model_construct(
        description="", parameters={"properties": properties, "required": list(properties)[:1]}
    )
    view = form(defined)
    assert len(inputs(view)) >= bool(properties)
    values = state(view["blocks"], {})
    assert values.keys() == {block["block_id"] for block in view["blocks"]}
