"""Cleaning and size limits of text and JSON for the database."""

from __future__ import annotations

import hashlib
import json
import math
import re
from _json import make_encoder
from json.encoder import encode_basestring
from typing import Any, Final
from urllib.parse import urlsplit

from draftsman.errors import UsageError
from draftsman.formats.received_json import REPLACEMENT
from draftsman.formats.truncation import truncate

LARGEST = 10**30
"""Largest number; one below its inverse becomes 0, since jsonb stores every digit."""
EVENT_LIMIT = 10_000
"""Bytes of an event's payload."""
CHECKPOINT_LIMIT = 1024 * 1024
"""Bytes of a checkpoint as JSON."""
REQUEST_LIMIT = 1024 * 1024
"""Bytes of a request, a result or an answer as JSON."""
STORED_SENTENCE = {"stored": "sentence"}
"""Metadata of a field of a row whose text the database may have written, as a sentence's name and
values. See `draftsman.database.sentences`."""
TOO_DEEP = "is nested too deeply; flatten it"
_refuse = json.JSONEncoder().default
# JSONEncoder makes such an encoder for each value, which costs three times the encoding
_plain = make_encoder(None, _refuse, encode_basestring, None, ": ", ", ", False, False, True)
_canonical = make_encoder(None, _refuse, encode_basestring, None, ":", ",", True, False, True)


def clean(value: Any) -> Any:
    """Return the value with NUL and lone surrogates, which PostgreSQL refuses, replaced.

    Raises UsageError for a value that is not JSON, including NaN and infinity, for numbers of more
    than 30 digits, and for a value that is nested too deeply.
    """
    try:
        return _clean(value)
    except RecursionError:
        raise UsageError(f"a value {TOO_DEEP}") from None


def _clean(value: Any) -> Any:
    kind = type(value)  # common values first: each request passes here
    if kind is str and value.isascii() and "\x00" not in value:
        return value
    if kind is int and -LARGEST <= value <= LARGEST:
        return value
    if kind is dict:
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, str):
        return _clean_text(str(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _clean_number(value)
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    raise UsageError(f"a value of type {kind.__name__} is not JSON; use strings or numbers")


def _clean_text(value: str) -> str:
    if not value.isascii() and _has_lone(value):
        value = value.encode("utf-8", "replace").decode("utf-8")
    return value.replace("\x00", REPLACEMENT)


def _clean_number(value: float) -> float:
    if abs(value) > LARGEST and value not in (math.inf, -math.inf):
        raise UsageError("a number is too large; give it as text")
    if not math.isfinite(value):
        raise UsageError(f"{value} is not JSON; use a finite number")
    return value if isinstance(value, int) or abs(value) > 1 / LARGEST else 0.0


def clean_fields(data: Any) -> Any:
    """Clean the strings and JSON in a model's input; other values are returned as they are.

    Raises ValueError.
    """
    if not isinstance(data, dict):
        return data
    try:
        return {key: _clean_field(value) for key, value in data.items()}
    except RecursionError:
        raise ValueError(f"the value {TOO_DEEP}") from None
    except UsageError as error:
        raise ValueError(str(error)) from None


def clean_within_limit(value: Any, limit: int, what: str) -> Any:
    """Return the cleaned value; raises UsageError above `limit` bytes of JSON."""
    try:
        value = _clean(value)
    except RecursionError:
        raise UsageError(f"{what} {TOO_DEEP}") from None
    return check_size(value, limit, what)


def check_size(value: Any, limit: int, what: str) -> Any:
    """Return a cleaned value; raises UsageError above `limit` bytes of JSON."""
    if (size := _size(value)) > limit:
        raise UsageError(f"{what} has {size:,} bytes; at most {limit:,} are kept: store a file")
    return value


def truncate_payload(payload: dict[str, Any], limit: int = EVENT_LIMIT) -> dict[str, Any]:
    """Return the payload; above the limit its long texts are cut and `truncated` is set."""
    payload = clean(payload)
    if _size(payload) <= limit:
        return payload
    for keep in (2000, 500, 100):
        cut = {key: _shorten(value, keep) for key, value in payload.items()} | {"truncated": True}
        if _size(cut) <= limit:
            return cut
    return {"truncated": True, "keys": [key[:30] for key in list(payload)[:20]]}


def canonical(value: Any) -> str:
    """Return the value as compact JSON with sorted keys."""
    return "".join(_canonical(value, 0))


def digest(value: Any) -> str:
    """Return the SHA-256, in hex, of the value's canonical JSON."""
    return text_digest(canonical(value))


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def first_line(text: str, width: int = 120) -> str:
    """Return the first non-blank line, cut to `width` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return truncate(line, width)


_WORD: Final = re.compile(r"[^\W\d_]+(?=[\s,;:.?!)]|$)")


def capitalized(text: str, subject: str = "") -> str:
    """Return a sentence with a capital, unless it begins with a name.

    Such as its `subject`, if that is a single word, or a word with digits or marks in it.
    """
    is_name = bool(subject) and " " not in subject
    return text if is_name or not _WORD.match(text) else f"{text[:1].upper()}{text[1:]}"


def humanize(name: str) -> str:
    """Return the name of a status, kind or key as words: `dead_letter` as `dead letter`."""
    return name.replace("_", " ")


def _clean_field(value: Any) -> Any:
    if type(value) in (str, dict) or isinstance(value, str | dict):
        return clean(value)
    if isinstance(value, list | tuple):
        return [_clean_field(item) for item in value]
    return value


def _has_lone(value: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in value)


def _size(value: Any) -> int:
    text = "".join(_plain(value, 0))
    return len(text) if text.isascii() else len(text.encode())


def _shorten(value: Any, keep: int) -> Any:
    if isinstance(value, str):
        return truncate(value, keep)
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= keep else truncate(text, keep)


def is_link(url: str) -> bool:
    """Return whether a text is an HTTP URL that may be displayed as a link."""
    try:
        split = urlsplit(url)
        valid = split.scheme in {"http", "https"} and bool(split.hostname)
    except ValueError:
        return False
    return valid and not any(char.isspace() for char in url)
