"""Truncation of text between graphemes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Final

ELLIPSIS: Final = "…"
_LONGEST_CLUSTER: Final = 16
"""Code points of a grapheme; further combining marks are dropped."""
_ZWJ: Final = "\u200d"


def truncate(text: str, most: int, measure: Callable[[str], int] = len) -> str:
    """Return the text within a length, with an ellipsis where it is truncated.

    `measure`: of a part of a text; default: characters.
    """
    if most < 1:
        return ""
    if text[:most].isascii():
        if len(text) <= most:
            return text
        return text[: max(0, most - 1)].rstrip() + ELLIPSIS
    return join_within(graphemes(text), most, measure)


def join_within(units: Iterable[str], most: int, measure: Callable[[str], int] = len) -> str:
    """Join units up to a length, with an ellipsis; reads one unit more than fits."""
    fitting: list[str] = []
    size = 0
    for unit in units:
        fitting.append(unit)
        size += measure(unit)
        if size > most:
            break
    else:
        return "".join(fitting)
    while fitting and size > most - len(ELLIPSIS):
        size -= measure(fitting.pop())
    return "".join(fitting).rstrip() + ELLIPSIS


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units, which the limits of chats count."""
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
