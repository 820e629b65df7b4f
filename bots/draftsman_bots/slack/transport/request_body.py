"""Parsing of Slack's HTTP bodies: JSON, a form, or JSON in a form.

Bolt's own parser takes every form that contains the word "payload" for an interaction, and so
drops a slash command about a payload.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl

from draftsman_bots.json_fields import parse_object

MAX_FIELDS: Final = 100
"""Fields of a form at most; a slash command has about fifteen."""


class InvalidBody(ValueError):
    """The body does not match its content type, or is not an object."""


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """Return the payload; raises InvalidBody."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidBody("the body is not UTF-8") from None
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return _object(text)
    if kind == "application/x-www-form-urlencoded":
        return _form(text)
    raise InvalidBody("the content type is neither JSON nor a form")


def _form(text: str) -> dict[str, Any]:
    try:
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InvalidBody("the form has too many fields") from None
    if "command" not in fields and "payload" in fields:
        return _object(fields["payload"])
    if not fields:
        raise InvalidBody("the form is empty")
    return {**fields}


def _object(text: str) -> dict[str, Any]:
    payload = parse_object(text, strict=True)
    if payload is None:
        raise InvalidBody("the body is not a JSON object")
    return payload
