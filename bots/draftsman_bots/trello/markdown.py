"""People's text in Trello's Markdown: shown literally, and never longer than a comment. Pure.

What Markdown knows is escaped, a line's beginning included. `@name` rings somebody's bell wherever
it stands, in code as well: a space of no width behind the `@` disarms it. Outside code, Trello also
turns `:smile:` into an emoji and an address into a link, of which it may make a smart card: the
same space disarms both. Only `link` makes links. A comment ends with the marker of its delivery,
for it carries nothing else by which it could be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from draftsman.domain.text import is_link
from draftsman_bots.text import (
    ELLIPSIS,
    break_fences,
    graphemes,
    join_within,
    replace_invisible,
    truncate,
    utf16_length,
)

MAX_COMMENT: Final = 16_384
"""Characters of a comment: of what is sent, escaped."""
MAX_NAME: Final = 256
"""Characters of an attachment's name."""
MAX_TEXT: Final = 4000
"""Characters of one text among others."""
_SPECIAL: Final = re.compile(r"[\\`*_\[\]<>~|&]")
_BEGINS: Final = re.compile(r"(?m)^([ \t]*)(?:([-+=#])|(\d{1,9})([.)]))?")
_MARK: Final = re.compile(r"`?draftsman:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`?")
_EMOJI: Final = re.compile(r":(?=[\w+-]{1,100}:)(?!(?<=\d:)\d+:)")
"""The colon that begins `:smile:`, but not those of a time."""
_ADDRESS: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}:(?=//)|www(?=\.))")
_FENCES: Final = re.compile(r"(?m)^```")


def escape(text: str) -> str:
    """Return the text as a comment shows it literally."""
    return "".join(_units(text))


def escape_truncated(text: str, most: int = MAX_TEXT) -> str:
    """Return as much of a text, escaped, as fits; what is cut ends with an ellipsis."""
    return join_within(_units(text), most)


def bold(text: str, most: int = MAX_TEXT) -> str:
    """Return as much of a line, escaped, as fits, in bold; nothing of nothing."""
    said = escape_truncated(" ".join(text.split()), most - 4)
    return f"**{said}**" if said else ""


def code(text: str, most: int = MAX_TEXT) -> str:
    """Return as much of a text as fits in a code block, which nothing in it can end."""
    safe = strip_mentions(break_fences(replace_invisible(text))).strip("\n")
    return f"```\n{join_within(graphemes(safe), most - 8)}\n```"


def blockquote(text: str) -> str:
    """Return escaped lines as somebody's words: none of them is an answer."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def strip_mentions(text: str) -> str:
    """Return the text with nobody mentioned in it."""
    return text.replace("@", "@\u200b")


def strip_autolinks(text: str) -> str:
    """Return the text with no emoji and no link made of it by accident."""
    return _EMOJI.sub(":\u200b", _ADDRESS.sub("\\1\u200b", text))


def link(url: str) -> str:
    """Return an address that shows where it leads; other than http and https is shown as text."""
    if not is_link(url) or len(url) > MAX_TEXT // 2:
        return escape_truncated(url, MAX_TEXT // 2)
    safe = quote(replace_invisible(url), safe="!#$%&'()*+,/:;=?[]~-._").replace("@", "%40")
    safe = _EMOJI.sub("%3A", safe)
    return f"<{safe}>" if len(safe) <= MAX_TEXT // 2 else escape_truncated(url, MAX_TEXT // 2)


def with_marker(body: str, marker: str) -> str:
    """Return a whole comment: as much of the body as fits, and the marker."""
    end = f"\n\n`draftsman:{marker}`"
    room = MAX_COMMENT - utf16_length(end)
    if utf16_length(body) > room:
        body = truncate(body, room - len(ELLIPSIS) - 4)
    if len(_FENCES.findall(body)) % 2:
        body += "\n```"
    return body + end


def marker_of(text: str) -> str | None:
    """Return the marker of a comment of ours: its last line, unless that quotes one."""
    lines = text.strip().splitlines()
    match = _MARK.fullmatch(lines[-1].strip()) if lines else None
    return match[1] if match else None


def _units(text: str) -> Iterator[str]:
    """Yield what people see as one character, with what it needs to be seen so."""
    text = strip_autolinks(replace_invisible(text))
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
