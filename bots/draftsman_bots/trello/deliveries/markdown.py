"""Escaping of text for Trello's Markdown, and comments within the size limit. Pure.

Markdown syntax is escaped, also at the beginning of a line. `@name` notifies a member, even in
code, so a zero-width space is inserted after each `@`. Outside code, Trello also turns `:smile:`
into an emoji and a URL into a link or smart card; the same space prevents both. Only `link` creates
links. A comment ends with the marker of its delivery, the only way to find it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from draftsman.formats.invisible import escape_invisible
from draftsman.formats.truncation import ELLIPSIS, graphemes, utf16_length
from draftsman.text import is_link
from draftsman_bots.text import break_fences, join_within

MAX_COMMENT: Final = 16_384
"""Maximum characters of a comment, escaped."""
MAX_NAME: Final = 256
"""Maximum characters of an attachment's name."""
MAX_TEXT: Final = 4000
"""Default maximum characters of a text within a comment."""
_SPECIAL: Final = re.compile(r"[\\`*_\[\]<>~|&]")
_BEGINS: Final = re.compile(r"(?m)^([ \t]*)(?:([-+=#])|(\d{1,9})([.)]))?")
_MARK: Final = re.compile(r"`?draftsman:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`?")
_EMOJI: Final = re.compile(r":(?=[\w+-]{1,100}:)(?!(?<=\d:)\d+:)")
"""The colon that begins `:smile:`, but not a colon in a time."""
_ADDRESS: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}:(?=//)|www(?=\.))")
_FENCES: Final = re.compile(r"(?m)^```")


def escape(text: str) -> str:
    """Escape a text so that a comment shows it literally."""
    return "".join(_units(text))


def escape_truncated(text: str, most: int = MAX_TEXT) -> str:
    """Escape a text and truncate it with an ellipsis."""
    return join_within(_units(text), most)


def one_line(text: str, most: int = MAX_TEXT) -> str:
    """Escape and truncate a text as a single line, for an item of a list."""
    return escape_truncated(" ".join(text.split()), most)


def code(text: str, most: int = MAX_TEXT) -> str:
    """Return a truncated code block, with fences in the text broken up."""
    safe = strip_mentions(break_fences(escape_invisible(text))).strip("\n")
    return f"```\n{join_within(graphemes(safe), most - 8)}\n```"


def strip_mentions(text: str) -> str:
    """Disable mentions in a text."""
    return text.replace("@", "@\u200b")


def strip_autolinks(text: str) -> str:
    """Disable emoji codes and automatic links in a text."""
    return _EMOJI.sub(":\u200b", _ADDRESS.sub("\\1\u200b", text))


def link(url: str) -> str:
    """Return a link that shows its URL; other schemes than http and https become text."""
    if not is_link(url) or len(url) > MAX_TEXT // 2:
        return escape_truncated(url, MAX_TEXT // 2)
    safe = quote(escape_invisible(url), safe="!#$%&'()*+,/:;=?[]~-._").replace("@", "%40")
    safe = _EMOJI.sub("%3A", safe)
    return f"<{safe}>" if len(safe) <= MAX_TEXT // 2 else escape_truncated(url, MAX_TEXT // 2)


def with_marker(body: str, marker: str) -> str:
    """Return a comment: the body, truncated, and the marker."""
    end = f"\n\n`draftsman:{marker}`"
    room = MAX_COMMENT - utf16_length(end)
    if utf16_length(body) > room:
        body = join_within(graphemes(body), room - len(ELLIPSIS) - 4)
    if len(_FENCES.findall(body)) % 2:
        body += "\n```"
    return body + end


def marker_of(text: str) -> str | None:
    """Return the marker in the last line of a comment, or None; a quoted line does not match."""
    lines = text.strip().splitlines()
    match = _MARK.fullmatch(lines[-1].strip()) if lines else None
    return match[1] if match else None


def _units(text: str) -> Iterator[str]:
    """Yield each grapheme, escaped."""
    text = strip_autolinks(escape_invisible(text))
    begins = {match.start(): match for match in _BEGINS.finditer(text) if match[0]}
    at = 0
    while at < len(text):
        if (match := begins.get(at)) is not None:
            blank, sign, number, point = match.groups()
            yield from "\u00a0" * len(blank)
            if sign or number:
                yield f"\\{sign}" if sign else f"{number}\\{point}"
            at = match.end()
            continue
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        yield from map(_plain, graphemes(text[at:end]))
        at = end


def _plain(unit: str) -> str:
    return strip_mentions(_SPECIAL.sub(lambda match: "\\" + match[0], unit))
