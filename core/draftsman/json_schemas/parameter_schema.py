"""Parameters that a JSON Schema of an object describes: those of templates and of job types."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman.formats.near_names import near_or_all

MAX_REFERENCES: Final = 10
"""Local references that are followed."""
_DEFINITIONS: Final = ("$defs", "definitions")
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """A JSON Schema of an object, whose properties are the parameters."""

    schema: Mapping[str, Any]

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        """The schema of each parameter, without local references, and without null beside it."""
        properties = self.schema.get("properties", {})
        return {name: self._resolved(schema) for name, schema in properties.items()}

    @property
    def required(self) -> list[str]:
        """The parameters that must be given."""
        properties = self.properties
        required = self.schema.get("required", [])
        return [name for name in required if "default" not in properties.get(name, {})]

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of each parameter that has one."""
        return {
            name: schema["default"]
            for name, schema in self.properties.items()
            if "default" in schema
        }

    def without(self, names: Collection[str]) -> ParameterSchema:
        """Return the other parameters alone."""
        properties = self.schema.get("properties", {})
        required = self.schema.get("required", [])
        return ParameterSchema(
            {
                **{key: self.schema[key] for key in _DEFINITIONS if key in self.schema},
                "properties": {key: properties[key] for key in properties if key not in names},
                "required": [name for name in required if name not in names],
            }
        )

    def beside(self, others: ParameterSchema) -> ParameterSchema:
        """Return these parameters and the others, of which these replace those of their names."""
        if not others.properties:
            return self
        merged: dict[str, Any] = {
            key: {**others.schema.get(key, {}), **self.schema.get(key, {})}
            for key in ("properties", *_DEFINITIONS)
        }
        required = [*self.schema.get("required", []), *others.schema.get("required", [])]
        merged["required"] = list(dict.fromkeys(required))
        return ParameterSchema({**self.schema, **merged})

    def check_names(self, params: Mapping[str, Any]) -> None:
        """Raise UsageError for a name that is no parameter. The schema checks the values."""
        properties = self.properties
        for name in params:
            if name not in properties:
                known = near_or_all(name, properties, "parameters", 1)
                raise UsageError(f"unknown parameter {name[:60]!r}{known}")

    def parsed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters that were typed as text, with the types that their schemas name."""
        properties = self.properties
        return {
            name: _parse(value, properties.get(name, {})) if isinstance(value, str) else value
            for name, value in params.items()
        }

    def lines(self) -> Iterator[str]:
        """Yield a line for each parameter: its type or values, and its default."""
        required = self.required
        for name, schema in self.properties.items():
            notes = [placeholder(schema)]
            if "default" in schema:
                notes.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
            elif name in required:
                notes.append("required")
            if "description" in schema:
                notes.append(str(schema["description"]))
            yield f"{name}: {', '.join(notes)}"

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """Return a schema whose local reference, or only choice besides null, is replaced."""
        resolved = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(MAX_REFERENCES):
            inner = self._inner(resolved)
            if inner is None:
                break
            keyword, target = inner
            rest = {key: value for key, value in resolved.items() if key != keyword}
            resolved = {**target, **rest}
        return resolved

    def _inner(self, schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
        """Return the keyword that stands for another schema, and that schema."""
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = self.schema
            for part in reference[2:].split("/"):
                target = target.get(part) if isinstance(target, Mapping) else None
            return ("$ref", target) if isinstance(target, Mapping) else None
        for keyword in ("anyOf", "allOf"):
            choices = schema.get(keyword)
            if isinstance(choices, list):
                others = [choice for choice in choices if choice != {"type": "null"}]
                if len(others) == 1 and isinstance(others[0], Mapping):
                    return keyword, others[0]
        return None


def placeholder(schema: Mapping[str, Any]) -> str:
    """Return what a value of a schema is, in a word or two: `integer`, `eu|us`."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "|".join(
            choice if isinstance(choice, str) else json.dumps(choice) for choice in choices
        )
    kinds = schema.get("type", "any")
    return str(schema.get("format") or ("|".join(kinds) if isinstance(kinds, list) else kinds))


def text_choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values that a schema lists, if all are texts."""
    choices = schema.get("enum", ())
    return tuple(choices) if all(isinstance(choice, str) for choice in choices) else ()


def _parse(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of a text; a text that has another type stays a text."""
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if not types and text not in schema.get("enum", [text]):
        types = ["integer"]  # an enumeration of other values than texts
    if "string" in types or not types:
        return text
    if "boolean" in types and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if "array" in types:
            return [item.strip() for item in text.split(",") if item.strip()]
        return text
