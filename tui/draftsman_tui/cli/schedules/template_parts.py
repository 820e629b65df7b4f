"""Parameters of a template as options and as text, and its file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import UsageError
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.schedules.template import TemplateDefinition

TYPES: Final = ("string", "integer", "number", "boolean")


def schema_of(parameters: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of parameters such as `days:integer=7`; raises UsageError."""
    properties: dict[str, Any] = {}
    required = []
    for text in parameters:
        declared, equals, default = text.partition("=")
        name, colon, kind = declared.partition(":")
        schema: dict[str, Any] = {"type": "string"}
        if "|" in kind:
            schema["enum"] = [choice for choice in kind.split("|") if choice]
        elif colon and kind not in TYPES:
            raise UsageError(
                f"--parameter {text[:80]!r}: unknown type {kind!r}; allowed: {', '.join(TYPES)},"
                " or values as a|b"
            )
        elif colon:
            schema["type"] = kind
        if equals:
            schema["default"] = _default(default, schema, text)
        else:
            required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required}


def parameter_text(definition: TemplateDefinition) -> Iterator[str]:
    """Yield a line for each parameter: its type or values, and its default."""
    for name, schema in definition.properties.items():
        kind = schema.get("type", "any")
        parts = ["|".join(map(str, schema["enum"])) if "enum" in schema else str(kind)]
        if "default" in schema:
            parts.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
        elif name in definition.required:
            parts.append("required")
        if "description" in schema:
            parts.append(str(schema["description"]))
        yield f"{name}: {', '.join(parts)}"


def template_file(path: str) -> dict[str, Any]:
    """Read the fields of a template from a TOML file, or from stdin for `-`; raises UsageError."""
    text = params.read_text(Path(path))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: invalid TOML: {error}") from None


def _default(text: str, schema: dict[str, Any], option: str) -> Any:
    if schema["type"] == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(
            f"--parameter {option[:80]!r}: the default is not a valid {schema['type']}"
        ) from None
