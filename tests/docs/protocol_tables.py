"""Writes the tables of docs/agent-protocol.md from the models, and the examples from their files.

python tests/docs/protocol_tables.py
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from draftsman.agent_runs.protocol.agent_messages import ChoiceBody, FromAgent, PlanEntryBody
from draftsman.agent_runs.protocol.protocol import (
    AnswerBody,
    AttachmentBody,
    CommentBody,
    FailedValidator,
    MessageBody,
    ParentBody,
    Profile,
    RequestBody,
    StepState,
    ToAgent,
)
from draftsman.sandbox.processes.process import MAX_LINE
from draftsman.settings.profiles import CommandSettings, FixSettings

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
PAGE: Final = DOCS / "agent-protocol.md"
BEGIN: Final = "<!-- generated -->\n"
END: Final = "<!-- end -->\n"
PARTS: Final = (
    AnswerBody,
    CommentBody,
    AttachmentBody,
    ChoiceBody,
    PlanEntryBody,
    StepState,
    RequestBody,
    ParentBody,
    MessageBody,
    Profile,
    CommandSettings,
    FixSettings,
    FailedValidator,
)
EXAMPLES: Final = {"agent.py": "python", "agent.sh": "sh"}


def page(text: str) -> str:
    """Return the page with current text between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(generated()) + "\n" + END + after


def generated() -> Iterator[str]:
    for name, language in EXAMPLES.items():
        yield f"\n`docs/examples/{name}`:\n"
        yield f"```{language}\n{(DOCS / 'examples' / name).read_text()}```"
    yield "\n## To the agent\n"
    yield "`type` is the first field, and fields have no spaces between, for shells."
    for message in get_args(ToAgent):
        yield from section(message)
    yield "\n## From the agent\n"
    yield f"A line has at most {MAX_LINE:,} bytes. Other lines are refused, and never fatal."
    for message in get_args(FromAgent):
        yield from section(message)
    yield "\n## Parts"
    for part in PARTS:
        yield from section(part)


def section(model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema(by_alias=True)
    kind = schema["properties"].get("type", {}).get("const")
    yield f"\n### {f'`{kind}`' if kind else model.__name__}\n"
    yield inspect.cleandoc(model.__doc__ or "")
    parts = schema.get("$defs", {})
    fields = {name: field for name, field in schema["properties"].items() if name != "type"}
    yield "\n| field | shape | unset | |\n|---|---|---|---|"
    for name, field in fields.items():
        unset = "required" if name in schema.get("required", ()) else default(field)
        cells = (f"`{name}`", shape(field, parts), unset, field.get("description", ""))
        yield f"| {' | '.join(cells)} |"


def default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "" if value is None or value in ("", [], {}) else f"`{json.dumps(value)}`"


def shape(field: dict[str, Any], parts: dict[str, Any]) -> str:
    """Describe a field's JSON schema in a few words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        named = any(part.__name__ == name for part in PARTS)
        return f"[{name}](#{name.lower()})" if named else shape(parts[name], parts)
    if "anyOf" in field:
        shapes = [shape(each, parts) for each in field["anyOf"] if each.get("type") != "null"]
        return " or ".join(shapes)
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    match field.get("type"):
        case "array":
            return f"list of {shape(field['items'], parts)}"
        case "object" if "$ref" in field["additionalProperties"]:
            return f"object of {shape(field['additionalProperties'], parts)}"
        case "string":
            return "time" if field.get("format") == "date-time" else "text"
        case None:
            return "any JSON"
        case other:
            return str(other)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
