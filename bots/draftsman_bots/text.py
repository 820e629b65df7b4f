"""Truncation of text at grapheme boundaries, and replacement of control characters. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from draftsman.deliveries.documents.document import Span, Text

ELLIPSIS: Final = "…"
"""The end of truncated text."""
_FENCE: Final = re.compile("`{3,}")
_LONGEST_CLUSTER: Final = 16
"""Code points of a grapheme; further combining marks are dropped."""
_ZWJ: Final = "\u200d"
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, bidirectional overrides and surrogates."""


def replace_invisible(text: str) -> str:
    """Replace control characters and bidirectional overrides."""
    return _HIDDEN.sub("\ufffd", text.replace("\r\n", "\n"))


def truncate(text: str, max_length: int) -> str:
    """Return the text within a length, with an ellipsis where it is truncated."""
    text = replace_invisible(text)
    if len(text) <= max_length and text.isascii():
        return text
    return join_within(graphemes(text), max_length)


def truncate_spans(spans: Iterable[Span], max_length: int) -> Text:
    """Return the spans within a length of their plain text, as `truncate`."""
    fitting: list[Span] = []
    room = max_length
    for span in spans:
        length = utf16_length(str(span))
        if length > room:
            fitting.append(truncate(span, room) if isinstance(span, str) and room else ELLIPSIS)
            break
        fitting.append(span)
        room -= length
    return tuple(fitting)


def break_fences(text: str) -> str:
    """Break up code fences: truncated, an open fence would swallow the text after it."""
    return _FENCE.sub(lambda match: "\u200b".join(match[0]), text)


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units."""
    return len(text) + sum(char > "\uffff" for char in text)


def graphemes(text: str) -> Iterator[str]:
    """Yield graphemes: a character with its marks, joiners and flags."""
    cluster = ""
    for char in text:
        if cluster and not _joins(cluster, char):
            yield cluster
            cluster = ""
        if len(cluster) < _LONGEST_CLUSTER:
            cluster += char
    if cluster:
        yield cluster


def _joins(cluster: str, char: str) -> bool:
    if char in "\n\r" or cluster[-1] in "\n\r":
        return (cluster, char) == ("\r", "\n")
    if cluster[-1] == _ZWJ or char == _ZWJ:
        return True
    if "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f":
        return True  # skin tone modifiers; tag characters of regional flags
    if _is_flag(char):
        return len(cluster) == 1 and _is_flag(cluster)
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or _is_late_jamo(char)


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_late_jamo(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff"


def join_within(units: Iterable[str], max_length: int) -> str:
    """Join units up to a length, with an ellipsis; reads one unit more than fits."""
    fitting: list[str] = []
    size = 0
    for unit in units:
        fitting.append(unit)
        size += utf16_length(unit)
        if size > max_length:
            break
    else:
        return "".join(fitting)
    while fitting and size > max_length - len(ELLIPSIS):
        size -= utf16_length(fitting.pop())
    return "".join(fitting).rstrip() + ELLIPSIS
