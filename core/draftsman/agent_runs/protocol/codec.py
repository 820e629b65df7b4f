"""Lines of the protocol between `run_agent` and an agent: parsed without raising, and formatted."""

from __future__ import annotations

import json
from typing import Annotated, Final, get_args

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from draftsman import field_errors
from draftsman.agent_runs.protocol.agent_messages import FromAgent
from draftsman.agent_runs.protocol.protocol import AckMessage, ToAgent
from draftsman.sandbox.processes.process import MAX_LINE, MalformedLine

MAX_REASON: Final = 300
"""Maximum characters of the reason for refusing a line."""
TYPES: Final = tuple(model.model_fields["type"].default for model in get_args(FromAgent))
_Tagged = Annotated[FromAgent, Field(discriminator="type")]
_ADAPTER: Final[TypeAdapter[FromAgent]] = TypeAdapter(_Tagged)


def parse_line(line: bytes) -> FromAgent | MalformedLine:
    """Parse a line of an agent, with or without its newline; never raises."""
    line = line.strip()
    if len(line) > MAX_LINE:
        return MalformedLine.too_long(len(line), MAX_LINE)
    try:
        return _ADAPTER.validate_json(line, strict=True)
    except ValidationError as error:
        return MalformedLine(_reason(error), _id_of(line))


def encode(message: ToAgent | FromAgent) -> bytes:
    """Return the message as a compact line with a newline and `type` first."""
    short = isinstance(message, AckMessage)
    fields = message.model_dump(mode="json", by_alias=True, exclude_none=short)
    return json.dumps({"type": message.type, **fields}, separators=(",", ":")).encode() + b"\n"


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"].startswith("union_tag"):
        tag = first["ctx"].get("tag")
        problem = f"unknown type {tag[:60]!r}" if tag else "type is required"
        return f"{problem}; known types: {', '.join(TYPES)}"
    text = ": ".join(filter(None, field_errors.first_error(error)))
    return " ".join(text.split())[:MAX_REASON]


def _id_of(line: bytes) -> str | None:
    try:
        message = from_json(line)
    except ValueError:
        return None
    name = message.get("id") if isinstance(message, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= 200 else None
