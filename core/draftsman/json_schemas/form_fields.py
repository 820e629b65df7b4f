"""The fields of a form for parameters, which each front end shows in its own way. Pure.

A value that no input can express is entered as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from draftsman.json_schemas.parameter_schema import ParameterSchema

NOT_SET: Final = "unset"
"""Option of a flag without a value."""
_COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_OPTION: Final = re.compile("#[0-9]+")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FLAGS: Final = {"true": True, "false": False}


class Input(StrEnum):
    """How the value of a parameter is entered."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class FormField:
    """A parameter with its schema, whose local references are replaced."""

    name: str
    id: str
    """Its name in the form: `parameter:0`."""
    schema: Mapping[str, Any]
    required: bool
    lists: bool
    """Whether its choices, if it has any, are listed; otherwise they are entered."""

    @property
    def input(self) -> Input:
        """How its value is entered."""
        if self.lists:
            return Input.CHOICES if self.type == "array" else Input.CHOICE
        if self.type == "boolean":
            return Input.BOOLEAN
        if self.type in ("integer", "number"):
            return Input.NUMBER
        if self.type is None and not _COMPOSED & self.schema.keys():
            is_text = all(isinstance(choice, str) for choice in self.choices)
            return Input.TEXT if is_text else Input.JSON
        return Input.TEXT if self.type == "string" else Input.JSON

    @property
    def type(self) -> str | None:
        """Its only type besides null, `string` if it may be a text, else None."""
        return _type(self.schema)

    @property
    def choices(self) -> list[Any]:
        """The values that the schema lists, for an array those of its items."""
        return _choices(self.schema)

    @property
    def label(self) -> str:
        """Its title, or else its name."""
        title = self.schema.get("title")
        return title if isinstance(title, str) else self.name

    @property
    def hint(self) -> str:
        """Its description."""
        description = self.schema.get("description")
        return description if isinstance(description, str) else ""

    @property
    def has_default(self) -> bool:
        """Whether the schema has a default."""
        return "default" in self.schema

    @property
    def is_date(self) -> bool:
        """Whether a text is a date, such as 2026-11-30."""
        return self.schema.get("format") == "date"

    @property
    def is_long(self) -> bool:
        """Whether a text has several lines."""
        longest = number_of(self.schema, "maxLength") or 0
        return longest > MULTILINE or self.schema.get("format") == "multiline"

    def text(self, value: Any) -> str:
        """Return a value as it is entered."""
        if self.input is Input.CHOICE:
            return next(iter(self._options([value])), "")
        if self.input is Input.CHOICES:
            return ",".join(self._options(value if isinstance(value, list) else []))
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, ensure_ascii=False)

    def value(self, text: str) -> Any:
        """Return the value of an entered text; one that is not valid stays a text."""
        try:
            return _ENTERED[self.input](self, text)
        except (ValueError, RecursionError, LookupError):
            return text

    def _options(self, values: Sequence[Any]) -> list[str]:
        labels = [choice_label(choice) for choice in self.choices]
        return [
            option_value(labels.index(choice_label(value)))
            for value in values
            if choice_label(value) in labels
        ]


MULTILINE: Final = 200
"""Maximum length of a text from which its input has several lines."""


def form_fields(
    inputs: ParameterSchema, can_list: Callable[[list[str]], bool] = lambda labels: True
) -> list[FormField]:
    """Return the parameters in the order of the form: required parameters come first.

    `can_list`: whether the front end can offer choices with these different labels.
    """
    required = set(inputs.required)
    properties = inputs.properties
    names = list(properties)
    return [
        FormField(
            name,
            f"parameter:{names.index(name)}",
            properties[name],
            name in required,
            _are_different(labels := list(map(choice_label, _choices(properties[name]))))
            and can_list(labels),
        )
        for name in sorted(names, key=lambda name: name not in required)
    ]


def entered_values(fields: Sequence[FormField], entered: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a submitted form; a field that is left empty has none."""
    return {
        field.name: field.value(text)
        for field in fields
        if (text := entered.get(field.id, "")) not in ("", NOT_SET)
    }


def choice_label(value: Any) -> str:
    """Return the text of a choice."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def option_value(index: int) -> str:
    """Return the value of the option of a choice, which is short for any choice."""
    return f"#{index}"


def option_index(value: str) -> int | None:
    """Return the index of a choice in a value of an option."""
    return int(value[1:]) if _OPTION.fullmatch(value) else None


def number_of(schema: Mapping[str, Any], name: str) -> int | float | None:
    """Return the number of a keyword; None for all other values."""
    value = schema.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _type(schema: Mapping[str, Any]) -> str | None:
    types = schema.get("type", [])
    types = [name for name in (types if isinstance(types, list) else [types]) if name != "null"]
    if len(types) == 1:
        return str(types[0])
    return "string" if "string" in types else ("mixed" if types else None)


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    if _type(schema) == "array" and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return listed if isinstance(listed, list) else []


def _are_different(labels: list[str]) -> bool:
    """Return whether each choice has a text of its own, which is not the value of an option."""
    are_texts = all(label.strip() and option_index(label) is None for label in labels)
    return are_texts and 0 < len(labels) == len(set(labels))


def _number(_: FormField, text: str) -> int | float:
    if _INTEGER.fullmatch(text.strip()):
        return int(text)
    if _DECIMAL.fullmatch(text.strip()) is None or not math.isfinite(number := float(text)):
        raise ValueError
    return number


def _json(field: FormField, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        if field.type != "array" or text.startswith(("[", "{")):
            raise
        return [item.strip() for item in text.split(",") if item.strip()]


def _chosen(field: FormField, text: str) -> Any:
    """Return the choice of an option; an input without options has the text of the choice."""
    index = option_index(text)
    if index is not None:
        return field.choices[index]
    labels = [choice_label(choice) for choice in field.choices]
    return field.choices[labels.index(text.strip())]


def _several(field: FormField, text: str) -> Any:
    if text.startswith("["):
        return _json(field, text)
    return [_chosen(field, choice) for choice in text.split(",")]


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_ENTERED: Final[Mapping[Input, Callable[[FormField, str], Any]]] = {
    Input.TEXT: lambda _, text: text,
    Input.NUMBER: _number,
    Input.BOOLEAN: lambda _, text: _FLAGS[text],
    Input.CHOICE: _chosen,
    Input.CHOICES: _several,
    Input.JSON: _json,
}
