"""People's text in Slack's own way: shown literally, and never longer than Slack takes. Pure.

Only `&`, `<` and `>` can be escaped; it disarms mentions, broadcasts and hidden links. Lengths are
counted in UTF-16 units, of which no way of counting makes more, and text is cut between graphemes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, urlsplit

TEXT: Final = 3000
"""Characters of a section; the whole `text` of a message is kept below 4,000 with the same."""
ENDS: Final = "…"
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_UNESCAPES: Final = re.compile(r"&(amp|lt|gt);")
_MEANT: Final = {"amp": "&", "lt": "<", "gt": ">"}
_FENCE: Final = re.compile("`{3,}")
_LONGEST_CLUSTER: Final = 16
"""Code points of a grapheme: more marks on one letter than any writing has are let go of."""
_ZWJ: Final = "\u200d"
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, and those that turn the direction of what follows them."""


def escape(text: str) -> str:
    """Return the text as mrkdwn, and the top-level `text`, show it literally."""
    return "".join(_ESCAPES.get(char, char) for char in visible(text))


def unescape(text: str) -> str:
    """Return what somebody typed, of what Slack sends for it."""
    return _UNESCAPES.sub(lambda match: _MEANT[match[1]], text)


def visible(text: str) -> str:
    """Return the text with what cannot be seen, and turns other text about, replaced."""
    return _HIDDEN.sub("\ufffd", text.replace("\r\n", "\n"))


def escaped(text: str, most: int = TEXT) -> str:
    """Return as much of a text, escaped, as fits; what is cut ends with an ellipsis."""
    return _fit((escape(one) for one in graphemes(visible(text))), most)


def clamped(text: str, most: int) -> str:
    """Return as much of a text as fits a `plain_text` object, which is never parsed."""
    return _fit(graphemes(visible(text)), most)


def pieces(text: str, most: int = TEXT) -> Iterator[str]:
    """Yield the whole text, escaped, in pieces that fit; cut at the end of a line where it can."""
    kept, size = "", 0
    for line in visible(text).splitlines(keepends=True):
        units = [escape(one) for one in graphemes(line)]
        length = sum(map(width, units))
        if size + length > most and kept:
            yield kept
            kept, size = "", 0
        for unit in units:
            if size + width(unit) > most:
                yield kept
                kept, size = "", 0
            kept, size = kept + unit, size + width(unit)
    if kept:
        yield kept


def code(text: str, most: int = TEXT) -> str:
    """Return as much of a text as fits in a code block, which nothing in it can end."""
    safe = fenceless(visible(text)).strip("\n")
    if safe.endswith("`"):
        safe += "\u200b"
    return f"```\n{_fit((escape(one) for one in graphemes(safe)), most - 8)}\n```"


def fenceless(text: str) -> str:
    """Return the text with no code block begun or ended in it: a cut one would swallow the rest."""
    return _FENCE.sub(lambda match: "\u200b".join(match[0]), text)


def link(url: str) -> str:
    """Return a link that shows where it leads; other than http and https is shown as text."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= TEXT // 2
    except ValueError:
        fine = False
    if not fine or any(char.isspace() for char in url):
        return escaped(url, TEXT // 2)
    safe = quote(visible(url), safe="!#$%&'()*+,/:;=?@[]~-._")
    return f"<{safe.replace('&', '&amp;')}>" if len(safe) <= TEXT // 2 else escaped(url, TEXT // 2)


def width(text: str) -> int:
    """Return its length in UTF-16 units."""
    return len(text) + sum(char > "\uffff" for char in text)


def graphemes(text: str) -> Iterator[str]:
    """Yield what people see as one character: with its marks, joiners and flags."""
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
        return True  # the colour of a skin; the letters of a region's flag
    if _is_flag(char):
        return len(cluster) == 1 and _is_flag(cluster)
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or _is_late_jamo(char)


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_late_jamo(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff"


def _fit(units: Iterable[str], most: int) -> str:
    """Join units up to a length; one more unit is looked at than fits."""
    kept: list[str] = []
    size = 0
    for unit in units:
        kept.append(unit)
        size += width(unit)
        if size > most:
            break
    else:
        return "".join(kept)
    while kept and size > most - len(ENDS):
        size -= width(kept.pop())
    return "".join(kept).rstrip() + ENDS
