"""Parser of the values of a submitted form of parameters. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman_bots.slack.requests.template_form import (
    NOT_SET,
    Input,
    Parameter,
    form_parameters,
    index_of_option,
    label,
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EXPECTED: Final = {
    Input.NUMBER: "Enter a number.",
    Input.JSON: 'Enter JSON, such as "text", 7, true, ["a", "b"] or {"key": "value"}.',
    Input.CHOICE: "Choose a listed value.",
    Input.CHOICES: "Choose listed values.",
    Input.BOOLEAN: "Choose Yes or No.",
    Input.TEXT: "Enter a text.",
}


def entered_values(
    inputs: ParameterSchema, entered: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a submitted form by parameter, and errors by block.

    An input that is left empty has no value: its default is used.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for parameter in form_parameters(inputs):
        text = entered.get(parameter.block, "")
        if text in ("", NOT_SET):
            if parameter.required and parameter.block in entered:
                errors[parameter.block] = "Enter a value."
            continue
        try:
            values[parameter.name] = _entered_value(parameter, text)
        except (ValueError, RecursionError):
            errors[parameter.block] = _EXPECTED[parameter.input]
    return values, errors


def _entered_value(parameter: Parameter, text: str) -> Any:
    """Return an entered value; raises ValueError."""
    match parameter.input:
        case Input.TEXT:
            return text
        case Input.BOOLEAN:
            return {"true": True, "false": False}[_listed(text, ("true", "false"))]
        case Input.CHOICE:
            return _chosen(parameter.choices, text)
        case Input.CHOICES:
            if text.startswith("["):
                return json.loads(text, parse_constant=_refuse_constant)
            return [_chosen(parameter.choices, choice) for choice in text.split(",")]
        case Input.NUMBER:
            return _number(text)
        case Input.JSON:
            return json.loads(text, parse_constant=_refuse_constant)


def _number(text: str) -> int | float:
    if _INTEGER.fullmatch(text.strip()):
        return int(text)
    if _DECIMAL.fullmatch(text.strip()) is None or not math.isfinite(number := float(text)):
        raise ValueError
    return number


def _listed(text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise ValueError
    return text


def _chosen(choices: list[Any], text: str) -> Any:
    """Return the choice of an option; an input without options has the text of the choice."""
    index = index_of_option(text)
    if index is not None and index < len(choices):
        return choices[index]
    for choice in choices:
        if label(choice) == text.strip():
            return choice
    raise ValueError


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
