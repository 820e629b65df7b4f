"""Lines of the protocol between `run_agent` and an agent: parsed without raising, and formatted."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Annotated, Final, get_args

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from draftsman import field_errors
from draftsman.agent_runs.protocol.agent_messages import FromAgent
from draftsman.agent_runs.protocol.protocol import AckMessage, ToAgent
from draftsman.sandbox.processes.process import BEGINNING, MAX_LINE, MalformedLine

SHORT: Final = 16 * 1024
"""Bytes of a line that is parsed in the event loop."""
MAX_REASON: Final = 300
"""Maximum characters of the reason for refusing a line."""
TYPES: Final = tuple(model.model_fields["type"].default for model in get_args(FromAgent))
SURROGATES: Final = re.compile(
    rb"(\\[^u]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][\da-fA-F]{2}",
    re.DOTALL,
)
"""Escapes of JSON: group 1 is one to keep; the others are halves of a surrogate pair."""
HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
FIRST_ID: Final = re.compile(
    rb'\s*{\s*(?:"type"\s*:\s*"\w*"\s*,\s*)?"id"\s*:\s*"([ -!#-\[\]-~]{1,200})"'
)
"""The id of a message at its beginning, as most programs write it."""
REPLACEMENT: Final = rb"\ufffd"
_Tagged = Annotated[FromAgent, Field(discriminator="type")]
_ADAPTER: Final[TypeAdapter[FromAgent]] = TypeAdapter(_Tagged)


async def parse(line: bytes | MalformedLine) -> FromAgent | MalformedLine:
    """Parse a line as `parse_line`; a long one in a thread, so that other runs go on."""
    if isinstance(line, MalformedLine) or len(line) < SHORT:
        return parse_line(line)
    return await asyncio.to_thread(parse_line, line)


def parse_line(line: bytes | MalformedLine) -> FromAgent | MalformedLine:
    """Parse a line of an agent, with or without its newline; never raises.

    Half of a surrogate pair, which a program gets when it cuts a text, becomes U+FFFD.
    """
    if isinstance(line, MalformedLine):
        return replace(line, id=line.id or _id_of(line.beginning))
    line = line.strip()
    if len(line) > MAX_LINE:
        malformed = MalformedLine.too_long(len(line), MAX_LINE, line[:BEGINNING])
        return parse_line(malformed)
    if HALF.search(line):
        line = SURROGATES.sub(lambda escape: escape[1] or REPLACEMENT, line)
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
    """Return the id of a message that is not valid, or of which only the beginning is known."""
    try:
        message = from_json(line.decode(errors="replace"), allow_partial=True)
    except ValueError:  # invalid or too deep after its beginning
        found = FIRST_ID.match(line)
        return None if found is None else found[1].decode()
    name = message.get("id") if isinstance(message, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= 200 else None
