"""What may enter the store: text that PostgreSQL can keep, and no more of it than is useful."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any
from urllib.parse import urlsplit

from draftsman.errors import UsageError

REPLACEMENT = "\ufffd"
LARGEST = 10**30
"""Numbers beyond it are refused, below its inverse they are 0: jsonb writes out every digit."""
EVENT_LIMIT = 10_000
"""Maximum size of an event's payload, in bytes."""
CHECKPOINT_LIMIT = 1024 * 1024
"""Bytes of a checkpoint as JSON."""
REQUEST_LIMIT = 1024 * 1024
"""Bytes of a request, a result or an answer as JSON."""
_plain = json.JSONEncoder(ensure_ascii=False).encode
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def clean(value: Any) -> Any:
    """Return the value with what PostgreSQL refuses (NUL, lone surrogates) replaced, all through.

    Raises UsageError for what is not JSON, NaN and infinities included, and for numbers of more
    than 30 digits.
    """
    if isinstance(value, str):
        if type(value) is not str:
            value = str(value)
        if value.isascii():
            return value.replace("\x00", REPLACEMENT) if "\x00" in value else value
        kept = value.encode("utf-8", "replace").decode("utf-8") if _lone(value) else value
        return kept.replace("\x00", REPLACEMENT)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > LARGEST:
            raise UsageError("a number is too large; give it as text")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{value} is not JSON; give a finite number")
        if abs(value) > LARGEST:
            raise UsageError("a number is too large; give it as text")
        return value if abs(value) > 1 / LARGEST else 0.0
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    raise UsageError(f"a value of type {type(value).__name__} is not JSON; give text or numbers")


def clean_fields(data: Any) -> Any:
    """Return what a model is built from with its texts and JSON cleaned; other values pass.

    Raises ValueError, as validators do.
    """
    if not isinstance(data, dict):
        return data
    try:
        return {key: _clean_field(value) for key, value in data.items()}
    except RecursionError:
        raise ValueError("it is nested too deeply; flatten it") from None
    except UsageError as error:
        raise ValueError(str(error)) from None


def clean_within_limit(value: Any, limit: int, what: str) -> Any:
    """Return the cleaned value; raises UsageError when it is over `limit` bytes as JSON."""
    try:
        value = clean(value)
    except RecursionError:
        raise UsageError(f"{what} is nested too deeply; flatten it") from None
    return check_size(value, limit, what)


def check_size(value: Any, limit: int, what: str) -> Any:
    """Return the value, which was cleaned; raises UsageError over `limit` bytes as JSON."""
    if (size := _size(value)) > limit:
        raise UsageError(f"{what} has {size:,} bytes; at most {limit:,} are kept: store a file")
    return value


def truncate_payload(payload: dict[str, Any], limit: int = EVENT_LIMIT) -> dict[str, Any]:
    """Return the payload, its long texts cut and `truncated` set when it is over the limit."""
    payload = clean(payload)
    if _size(payload) <= limit:
        return payload
    for keep in (2000, 500, 100):
        cut = {key: _shorten(value, keep) for key, value in payload.items()} | {"truncated": True}
        if _size(cut) <= limit:
            return cut
    return {"truncated": True, "keys": [key[:30] for key in list(payload)[:20]]}


def digest(value: Any) -> str:
    """Return the SHA-256, in hex, of the value's canonical JSON."""
    return hashlib.sha256(_canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def first_line(text: str, width: int = 120) -> str:
    """Return the first line that says something, at most `width` characters of it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def _clean_field(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_clean_field(item) for item in value]
    return clean(value) if isinstance(value, str | dict) else value


def _lone(value: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in value)


def _size(value: Any) -> int:
    return len(_plain(value).encode())


def _shorten(value: Any, keep: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= keep else value[:keep] + "…"
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= keep else text[:keep] + "…"


def is_link(url: str) -> bool:
    """Return whether a text is the address of a web page, which may be shown as a link."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False
    return fine and not any(char.isspace() for char in url)
