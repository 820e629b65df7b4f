"""Escaping of text for Slack's mrkdwn, within Slack's length limits. Pure.

Only `&`, `<` and `>` can be escaped; this disarms mentions, broadcasts and hidden links. Lengths
are counted in UTF-16 code units, the largest count of any method, and text is truncated between
graphemes.
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
"""Characters of a section; the top-level `text`, limited to 4,000, uses the same limit."""
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_UNESCAPES: Final = re.compile(r"&(amp|lt|gt);")
_CHARACTERS: Final = {"amp": "&", "lt": "<", "gt": ">"}


_VOTER: Final = re.compile(r"\bslack:([UW][A-Z0-9]{1,20})(?:@[A-Z0-9]{1,20})?\b")
_OTHER_ACTOR: Final = re.compile(r"\b(cli|tui|api|mcp|trello):([^\s,:;]{1,100})")
_PLACES: Final = {"cli": "in a terminal", "tui": "in a terminal"}


def with_display_names(text: str) -> str:
    """Replace voter ids in mrkdwn by mentions, or by a name and its channel."""
    return _OTHER_ACTOR.sub(_display_other_actor, _VOTER.sub(r"<@\1>", text))


def mention_reader(text: str, user: str) -> str:
    """Replace the reader's id in mrkdwn by a mention, as events carry no names."""
    return re.sub(rf"(?<![\w<@:]){re.escape(user)}(?:@[A-Z0-9]+)?\b", f"<@{user}>", text)


def address_reader(text: str, user: str) -> str:
    """Replace the reader's id at the start of plain text by "you"."""
    return re.sub(rf"^{re.escape(user)}(?:@[A-Z0-9]+)?\b", "you", text)


def address_in_modal(text: str) -> str:
    """Replace voter ids in plain text: a modal shows no mentions."""
    return _OTHER_ACTOR.sub(_display_other_actor, _VOTER.sub("a Slack user", text))


def _display_other_actor(match: re.Match[str]) -> str:
    place = _PLACES.get(match[1], f"by {match[1].upper()}")
    return "a Trello user" if match[1] == "trello" else f"{match[2]} ({place})"


_HINTS: Final = {
    "jobs": "see: list",
    "questions": "see: list",
    "approve|deny": "approve or deny it",
    "answer": "reply with an answer",
}
"""Wording of hints in chat, by the command that they name."""
_TYPED: Final = frozenset(
    {"retry", "answer", "approve", "deny", "cancel", "show", "list", "status"}
)
"""Commands with the same syntax in chat and in a terminal, without the program's name."""


def error_text(error: DraftsmanError) -> str:
    """Return an error's message, with its hint worded for a chat."""
    text = f"{error.subject} {error.reason}" if error.subject else error.reason
    hint = error.hint
    if hint is None:
        return text
    if not isinstance(hint, CommandHint):
        return f"{text}; {hint}"
    wording = f"{hint.lead}: {chat_command(hint)}" if hint.lead else chat_command(hint)
    return f"{text}; {_HINTS.get(hint.name, wording)}"


def chat_command(command: CommandHint) -> str:
    """Return a command in chat syntax, or as a terminal command if chat has none."""
    return command.line if command.name in _TYPED else f"draftsman {command.line}"


def escape(text: str) -> str:
    """Escape the text so that mrkdwn and the top-level `text` show it literally."""
    return "".join(_ESCAPES.get(char, char) for char in replace_invisible(text))


def unescape(text: str) -> str:
    """Reverse the escaping of text that Slack sends."""
    return _UNESCAPES.sub(lambda match: _CHARACTERS[match[1]], text)


def escape_truncated(text: str, max_length: int = MAX_TEXT) -> str:
    """Escape the text within a length, with an ellipsis where it is truncated."""
    return join_within(
        (escape(grapheme) for grapheme in graphemes(replace_invisible(text))), max_length
    )


def escape_chunks(text: str, max_length: int = MAX_TEXT) -> Iterator[str]:
    """Yield the whole text, escaped, in chunks that fit, split at line ends if possible."""
    chunk, size = "", 0
    for line in replace_invisible(text).splitlines(keepends=True):
        units = [escape(grapheme) for grapheme in graphemes(line)]
        length = sum(map(utf16_length, units))
        if size + length > max_length and chunk:
            yield chunk
            chunk, size = "", 0
        for unit in units:
            if size + utf16_length(unit) > max_length:
                yield chunk
                chunk, size = "", 0
            chunk, size = chunk + unit, size + utf16_length(unit)
    if chunk:
        yield chunk


def code(text: str, max_length: int = MAX_TEXT) -> str:
    """Return a code block, truncated to fit, that its content cannot close."""
    safe = break_fences(replace_invisible(text)).strip("\n")
    if safe.endswith("`"):
        safe += "\u200b"
    escaped = (escape(grapheme) for grapheme in graphemes(safe))
    return f"```\n{join_within(escaped, max_length - 8)}\n```"


def link(url: str) -> str:
    """Return a link that shows its URL; schemes other than http and https become plain text."""
    if not is_link(url) or len(url) > MAX_TEXT // 2:
        return escape_truncated(url, MAX_TEXT // 2)
    safe = quote(replace_invisible(url), safe="!#$%&'()*+,/:;=?@[]~-._")
    return (
        f"<{safe.replace('&', '&amp;')}>"
        if len(safe) <= MAX_TEXT // 2
        else escape_truncated(url, MAX_TEXT // 2)
    )
