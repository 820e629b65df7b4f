"""Templates: parameters in the fields of a request."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.schedules.names import check_name
from draftsman.schedules.template import TemplateDefinition, define
from tests.support.cases import cases

PARAMETERS = {
    "properties": {
        "package": {"type": "string"},
        "days": {"type": "integer", "default": 7},
        "level": {"enum": ["minor", "major"]},
        "strict": {"type": "boolean"},
        "files": {"type": "array"},
        "port": {"enum": [80, 443]},
    },
    "required": ["package", "days"],
}


def _define(**fields: Any) -> TemplateDefinition:
    return define({"parameters": PARAMETERS} | fields)


def test_placeholders_are_replaced_in_every_field() -> None:
    definition = _define(
        type="report",
        title="Update {package}",
        text='Update {package} in {days} days; {{package}} and {"a": {}} stay as they are',
        payload={"package": "{package}", "nested": [{"days": "{days}", "{package}": "{files}"}]},
        tags=("nightly", "{level}", "for-{level}"),
        repo="{package}",
        priority=3,
    )
    fields = definition.render({"package": "x{y}", "days": 3, "level": "minor", "files": ["a"]})
    assert fields == {
        "type": "report",
        "title": "Update x{y}",
        "text": 'Update x{y} in 3 days; {package} and {"a": {}} stay as they are',
        "payload": {"package": "x{y}", "nested": [{"days": 3, "x{y}": ["a"]}]},
        "tags": ["nightly", "minor", "for-minor"],
        "repo": "x{y}",
        "priority": 3,
    }


def test_a_parameter_without_a_value_leaves_its_field_out() -> None:
    fields = _define(repo="{level}", text="{days}: [{level}]", tags=("{level}", "x")).render(
        {"days": 2}
    )
    assert fields == {"text": "2: []", "tags": ["x"]}


def test_a_text_field_gets_the_text_of_a_number() -> None:
    assert _define(text="{days}").render({"days": 2}) == {"text": "2"}


def test_typed_values_have_the_types_of_their_schemas() -> None:
    typed = {
        "package": "3",
        "days": "14",
        "strict": "yes",
        "files": "a, b",
        "port": "80",
        "level": "minor",
    }
    assert _define().inputs.parsed(typed) == {
        "package": "3",
        "days": 14,
        "strict": True,
        "files": ["a", "b"],
        "port": 80,
        "level": "minor",
    }
    assert _define().inputs.parsed({"files": '["a,b"]', "days": "soon"}) == {
        "files": ["a,b"],
        "days": "soon",
    }


def test_parameters_have_defaults_and_names() -> None:
    inputs = _define().inputs
    assert inputs.defaults == {"days": 7}
    assert inputs.required == ["package"]
    with pytest.raises(UsageError, match="unknown parameter 'pakage'; did you mean package"):
        inputs.check_names({"pakage": "x"})


@cases(
    ("fields", "problem"),
    [
        ({"text": "{other}"}, r"text: unknown parameter \{other\}; parameters: package, days"),
        ({"payload": {"a": ["{other}"]}}, "payload: unknown parameter"),
        ({"parameters": {"type": "array"}}, "must have"),
        ({"parameters": {"properties": []}}, "properties must be an object"),
        ({"parameters": {"properties": {"a b": {}}}}, "'a b' is not a name"),
        ({"priority": 5000}, "priority: must be at most 1000"),
        ({"mode": "destroy"}, "mode: must be"),
        ({"colour": "red"}, "colour: unknown key; allowed: description, parameters, type"),
        ({"description": "x" * 501}, "description: must have at most 500"),
        ({"text": "x" * 1_100_000}, "the template has"),
    ],
)
def test_an_invalid_definition_is_refused_in_one_line(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        _define(**fields)
    assert "\n" not in str(refused.value)


@cases("name", ["", "a b", "-x", "a@1", "x" * 64, "a/b"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="allowed: letters, digits"):
        check_name(name)
