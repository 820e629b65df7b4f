"""People's text in Slack's own way: shown literally, and never longer than Slack takes. Pure.

Only `&`, `<` and `>` can be escaped; it disarms mentions, broadcasts and hidden links. Lengths are
counted in UTF-16 units, of which no way of counting makes more, and text is cut between graphemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from draftsman.domain.text import is_link
from draftsman.errors import CommandHint, DraftsmanError
from draftsman_bots.text import (
    break_fences,
    graphemes,
    join_within,
    replace_invisible,
    utf16_length,
)

MAX_TEXT: Final = 3000
"""Characters of a section; the whole `text` of a message is kept below 4,000 with the same."""
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_UNESCAPES: Final = re.compile(r"&(amp|lt|gt);")
_MEANT: Final = {"amp": "&", "lt": "<", "gt": ">"}


_VOTER: Final = re.compile(r"\bslack:([UW][A-Z0-9]{1,20})(?:@[A-Z0-9]{1,20})?\b")
_ELSEWHERE: Final = re.compile(r"\b(cli|tui|api|mcp|trello):([^\s,:;]{1,100})")
_WAYS: Final = {"cli": "in a terminal", "tui": "in a terminal"}


def with_display_names(text: str) -> str:
    """Return mrkdwn in which voters are called as people call them: here by their names."""
    return _ELSEWHERE.sub(_elsewhere, _VOTER.sub(r"<@\1>", text))


def mention_reader(text: str, user: str) -> str:
    """Return mrkdwn for one reader, whose id in it becomes a mention: events carry no names."""
    return re.sub(rf"(?<![\w<@:]){re.escape(user)}(?:@[A-Z0-9]+)?\b", f"<@{user}>", text)


def address_reader(text: str, user: str) -> str:
    """Return plain text for one reader, whose id at its beginning becomes "you"."""
    return re.sub(rf"^{re.escape(user)}(?:@[A-Z0-9]+)?\b", "you", text)


def address_in_modal(text: str) -> str:
    """Return the same for a window, which shows no mentions."""
    return _ELSEWHERE.sub(_elsewhere, _VOTER.sub("a Slack user", text))


def _elsewhere(match: re.Match[str]) -> str:
    way = _WAYS.get(match[1], f"by {match[1].upper()}")
    return "a Trello user" if match[1] == "trello" else f"{match[2]} ({way})"


_HINTS: Final = {
    "jobs": "see: list",
    "questions": "see: list",
    "approve|deny": "approve or deny it",
    "answer": "reply with an answer",
}
"""Hints, by the command that they name, as they are worded here."""
_TYPED: Final = frozenset(
    {"retry", "answer", "approve", "deny", "cancel", "show", "list", "status"}
)
"""Commands that are typed in a chat as in a terminal, without the program's name."""


def error_text(error: DraftsmanError) -> str:
    """Return the message of an error, its hint worded for a chat."""
    text = f"{error.subject} {error.reason}" if error.subject else error.reason
    hint = error.hint
    if hint is None:
        return text
    if not isinstance(hint, CommandHint):
        return f"{text}; {hint}"
    here = f"{hint.lead}: {chat_command(hint)}" if hint.lead else chat_command(hint)
    return f"{text}; {_HINTS.get(hint.name, here)}"


def chat_command(command: CommandHint) -> str:
    """Return a command as it is typed in a chat, or in a terminal where no chat has it."""
    return command.line if command.name in _TYPED else f"draftsman {command.line}"


def escape(text: str) -> str:
    """Return the text as mrkdwn, and the top-level `text`, show it literally."""
    return "".join(_ESCAPES.get(char, char) for char in replace_invisible(text))


def unescape(text: str) -> str:
    """Return what somebody typed, of what Slack sends for it."""
    return _UNESCAPES.sub(lambda match: _MEANT[match[1]], text)


def escape_truncated(text: str, most: int = MAX_TEXT) -> str:
    """Return as much of a text, escaped, as fits; what is cut ends with an ellipsis."""
    return join_within((escape(one) for one in graphemes(replace_invisible(text))), most)


def escape_chunks(text: str, most: int = MAX_TEXT) -> Iterator[str]:
    """Yield the whole text, escaped, in pieces that fit; cut at the end of a line where it can."""
    kept, size = "", 0
    for line in replace_invisible(text).splitlines(keepends=True):
        units = [escape(one) for one in graphemes(line)]
        length = sum(map(utf16_length, units))
        if size + length > most and kept:
            yield kept
            kept, size = "", 0
        for unit in units:
            if size + utf16_length(unit) > most:
                yield kept
                kept, size = "", 0
            kept, size = kept + unit, size + utf16_length(unit)
    if kept:
        yield kept


def code(text: str, most: int = MAX_TEXT) -> str:
    """Return as much of a text as fits in a code block, which nothing in it can end."""
    safe = break_fences(replace_invisible(text)).strip("\n")
    if safe.endswith("`"):
        safe += "\u200b"
    return f"```\n{join_within((escape(one) for one in graphemes(safe)), most - 8)}\n```"


def link(url: str) -> str:
    """Return a link that shows where it leads; other than http and https is shown as text."""
    if not is_link(url) or len(url) > MAX_TEXT // 2:
        return escape_truncated(url, MAX_TEXT // 2)
    safe = quote(replace_invisible(url), safe="!#$%&'()*+,/:;=?@[]~-._")
    return (
        f"<{safe.replace('&', '&amp;')}>"
        if len(safe) <= MAX_TEXT // 2
        else escape_truncated(url, MAX_TEXT // 2)
    )
