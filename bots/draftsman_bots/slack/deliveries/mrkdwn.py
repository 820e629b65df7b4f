"""Escaping of text for Slack's mrkdwn, within Slack's length limits. Pure.

Only `&`, `<` and `>` can be escaped; this disarms mentions, broadcasts and hidden links. A mark
that could begin or end bold, italic or struck text is the fallback of an invalid date, which Slack
does not parse (jsx-slack issue 124): a reader copies no other characters. Words in backticks have a
fixed width, as their author meant, and no other marks. Lengths are counted in UTF-16 code units,
the largest count of any method, and text is truncated between graphemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote

from draftsman.deliveries.documents.document import Command, Link, Span, Step, Strong, Text, Time
from draftsman.errors import CommandHint, DraftsmanError, Hint, NotPermitted, with_hint
from draftsman.formats.invisible import escape_invisible
from draftsman.formats.times import spelled_time
from draftsman.formats.truncation import graphemes, utf16_length
from draftsman.jobs.job import Source
from draftsman.people.spans import ActorRef, Spans
from draftsman.text import is_link
from draftsman_bots.slack.ids import account_user_id
from draftsman_bots.text import break_fences, join_within

MAX_TEXT: Final = 3000
"""Characters of a section; the top-level `text`, limited to 4,000, uses the same limit."""
MAX_NAME: Final = 100
"""Characters of a person's name."""
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARK: Final = re.compile(r"`[^`\n]+`|((?<![^\W_])[*_~]|[*_~](?![^\W_]))")
"""A mark outside of backticks that is not between two letters or digits, as those of `a_b` are."""
_UNESCAPES: Final = re.compile(r"&(amp|lt|gt);")
_CHARACTERS: Final = {"amp": "&", "lt": "<", "gt": ">"}

_USER_ID: Final = re.compile(r"[UW][A-Z0-9]{1,20}")
_ORIGINS: Final[Mapping[str, str]] = {
    Source.CLI: "in a terminal",
    Source.TUI: "in a terminal",
    Source.API: "by API",
    Source.MCP: "by MCP",
}


def mention_spans(spans: Iterable[Span], max_length: int = MAX_TEXT) -> str:
    """Return spans as mrkdwn within a length, with mentions of Slack users."""
    units = (unit for span in spans for unit in _escaped_units(span))
    return join_within(units, max_length)


def plain_spans(spans: Spans, reader: str) -> str:
    """Return spans as plain text for a modal, which shows no mentions; `reader` is a user id."""
    return "".join(
        span if isinstance(span, str) else _plain_name(span, account_user_id(reader))
        for span in spans
    )


def mention(actor: ActorRef) -> str:
    """Return an actor as mrkdwn: the reported name, a mention, or the name and its channel."""
    if (user_id := _user_id(actor)) is not None:
        return f"<@{user_id}>"
    return escape_truncated(_name(actor), MAX_NAME)


def _plain_name(actor: ActorRef, reader: str) -> str:
    if (user_id := _user_id(actor)) is not None:
        return "you" if user_id == reader else "a Slack user"
    return _name(actor)


def _user_id(actor: ActorRef) -> str | None:
    """Return the id of a Slack user who reported no name; events carry the id in its place."""
    user_id = account_user_id(actor.id)
    if actor.channel != "slack" or actor.display_name not in ("", user_id):
        return None
    return user_id if _USER_ID.fullmatch(user_id) else None


def _name(actor: ActorRef) -> str:
    if actor.display_name:
        return actor.display_name
    if actor.channel == "trello":
        return "a Trello user"
    origin = _ORIGINS.get(actor.channel) if actor.channel is not None else None
    return f"{actor.id} ({origin})" if origin else actor.name


_HINTS: Final = {
    "jobs": "see: list",
    "questions": "see: list",
    "approve|deny": "approve or deny it",
    "answer": "reply with an answer",
    "templates list": "see: templates",
    "schedules list": "see: schedules",
}
"""Wording of hints in chat, by the command that they name."""
_TYPED: Final = frozenset(
    {
        "retry",
        "answer",
        "approve",
        "deny",
        "request-changes",
        "cancel",
        "show",
        "list",
        "status",
    }
)
"""Commands with the same syntax in chat and in a terminal, without the program's name."""


def error_spans(error: DraftsmanError) -> Spans:
    """Return an error's message with a reference to its actor, and its hint for a chat."""
    actor = error.actor if isinstance(error, NotPermitted) else ""
    subject = ActorRef(actor, error.subject) if actor else error.subject
    prefix = (subject, " ") if subject else ()
    if error.hint is None:
        return *prefix, error.reason
    return *prefix, with_hint(error.reason, _hint_text(error.hint))


def _hint_text(hint: Hint) -> str:
    if not isinstance(hint, CommandHint):
        return str(hint)
    wording = f"{hint.lead}: {chat_command(hint)}" if hint.lead else chat_command(hint)
    return _HINTS.get(hint.name, wording)


def chat_command(command: CommandHint) -> str:
    """Return a command in chat syntax, or as a terminal command if chat has none."""
    return command.line if command.name in _TYPED else f"draftsman {command.line}"


def escape(text: str) -> str:
    """Escape mentions and links in a text; marks of formatting stay."""
    return _literal(escape_invisible(text))


def _literal(text: str) -> str:
    """Escape visible text, or a part of it."""
    return "".join(_ESCAPES.get(char, char) for char in text)


def unescape(text: str) -> str:
    """Reverse the escaping of text that Slack sends."""
    return _UNESCAPES.sub(lambda match: _CHARACTERS[match[1]], text)


def escape_truncated(text: str, max_length: int = MAX_TEXT) -> str:
    """Return mrkdwn that shows the text, with an ellipsis where it is truncated to a length."""
    return join_within(_literal_units(escape_invisible(text)), max_length)


def _literal_units(text: str) -> Iterator[str]:
    """Yield mrkdwn that shows each grapheme of visible text as it is."""
    marks = {match.start() for match in _MARK.finditer(text) if match[1]}
    start = 0
    for grapheme in graphemes(text):
        yield f"<!date^00000000^{{_}}|{grapheme}>" if start in marks else _literal(grapheme)
        start += len(grapheme)


def inline_code(text: str, max_length: int = MAX_TEXT) -> str:
    """Return text with a fixed width within a length; as it is if it has a backtick."""
    if "`" in text:
        return escape_truncated(text, max_length)
    return f"`{join_within(map(_literal, graphemes(escape_invisible(text))), max_length)}`"


def escape_chunks(text: str | Text, max_length: int = MAX_TEXT) -> Iterator[str]:
    """Yield the whole text, escaped, in chunks that fit, split at line ends if possible.

    Its code fences are broken up.
    """
    chunk = ""
    size = 0
    for units in _lines((text,) if isinstance(text, str) else text):
        length = sum(map(utf16_length, units))
        if size + length > max_length and chunk:
            yield chunk
            chunk = ""
            size = 0
        for unit in units:
            if size + utf16_length(unit) > max_length:
                yield chunk
                chunk = ""
                size = 0
            chunk = chunk + unit
            size = size + utf16_length(unit)
    if chunk:
        yield chunk


def _lines(spans: Iterable[Span]) -> Iterator[list[str]]:
    """Yield the escaped units of each line, with its line end."""
    line: list[str] = []
    for span in spans:
        if not isinstance(span, str):
            line.append(_marked(span))
            continue
        for piece in break_fences(escape_invisible(span)).splitlines(keepends=True):
            line += _literal_units(piece)
            if piece.splitlines() != [piece]:
                yield line
                line = []
    if line:
        yield line


def _escaped_units(span: Span) -> Iterable[str]:
    if isinstance(span, str):
        return _literal_units(escape_invisible(span))
    return (_marked(span),)


def _marked(span: ActorRef | Time | Link | Strong | Command | Step) -> str:
    match span:
        case ActorRef():
            return mention(span)
        case Time(when):
            return local_time(when)
        case Link(url):
            return link(url)
        case Strong(text):
            return f"*{''.join(_literal_units(escape_invisible(text)))}*"
        case Command(line):
            return inline_code(line)
        case Step(command=line):
            return inline_code(f"draftsman {line}")


def local_time(moment: datetime) -> str:
    """Return a time that Slack shows in the reader's time zone."""
    fallback = escape(spelled_time(moment))
    return f"<!date^{int(moment.timestamp())}^{{date_short_pretty}} {{time}}|{fallback}>"


def code(text: str, max_length: int = MAX_TEXT) -> str:
    """Return a code block, truncated to fit, that its content cannot close."""
    safe = break_fences(escape_invisible(text)).strip("\n")
    if safe.endswith("`"):
        safe += "\u200b"
    return f"```\n{join_within(map(_literal, graphemes(safe)), max_length - 8)}\n```"


def link(url: str) -> str:
    """Return a link that shows its URL; schemes other than http and https become plain text."""
    if not is_link(url) or len(url) > MAX_TEXT // 2:
        return escape_truncated(url, MAX_TEXT // 2)
    safe = quote(escape_invisible(url), safe="!#$%&'()*+,/:;=?@[]~-._")
    return (
        f"<{safe.replace('&', '&amp;')}>"
        if len(safe) <= MAX_TEXT // 2
        else escape_truncated(url, MAX_TEXT // 2)
    )
