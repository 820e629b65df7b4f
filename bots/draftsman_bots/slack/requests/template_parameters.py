"""The parameters of a template as inputs of a form. Pure.

A value that no input of Slack can express is entered as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from draftsman.schedules.template import TemplateDefinition
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import MAX_OPTIONS, OPTION_TEXT
from draftsman_bots.text import utf16_length

_COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_PLACE: Final = re.compile("#[0-9]+")
NOT_SET: Final = "unset"
"""Option of a flag without a value."""
MAX_REFERENCES: Final = 10
"""Local references that are followed."""


class Input(StrEnum):
    """How the value of a parameter is entered."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its schema, whose local references are replaced."""

    name: str
    block: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def input(self) -> Input:
        """How its value is entered."""
        if are_options(self.choices):
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
        types = self.schema.get("type", [])
        types = [name for name in (types if isinstance(types, list) else [types]) if name != "null"]
        if len(types) == 1:
            return str(types[0])
        return "string" if "string" in types else ("mixed" if types else None)

    @property
    def choices(self) -> list[Any]:
        """The values that the schema lists, for an array those of its items."""
        items = self.schema.get("items")
        schema = items if self.type == "array" and isinstance(items, dict) else self.schema
        listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return listed if isinstance(listed, list) else []

    @property
    def has_default(self) -> bool:
        """Whether the schema has a default."""
        return "default" in self.schema


def form_parameters(definition: TemplateDefinition) -> Iterator[Parameter]:
    """Yield the parameters in the order of the form: required parameters come first."""
    required = set(definition.required)
    names = list(definition.properties)
    for name in sorted(names, key=lambda name: name not in required):
        schema = _resolved(definition.properties[name], definition.parameters)
        yield Parameter(name, f"{ids.PARAMETER}:{names.index(name)}", schema, name in required)


def are_options(choices: list[Any]) -> bool:
    """Return whether Slack can offer these values, and show each by a text of its own."""
    labels = {label(choice) for choice in choices}
    return 0 < len(choices) == len(labels) <= MAX_OPTIONS and all(map(_is_label, labels))


def place_value(place: int) -> str:
    """Return the value of the option of a choice, which is short for any choice."""
    return f"#{place}"


def place_of(value: str) -> int | None:
    """Return the place of a choice in a value of an option."""
    return int(value[1:]) if _PLACE.fullmatch(value) else None


def _is_label(text: str) -> bool:
    return 0 < utf16_length(text) <= OPTION_TEXT and bool(text.strip()) and place_of(text) is None


def label(value: Any) -> str:
    """Return the text of a choice."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose local reference is replaced by what it names."""
    for _ in range(MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            break
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema
