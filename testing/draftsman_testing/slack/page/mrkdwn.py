"""Slack's mrkdwn as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Final

from draftsman.jobs.status_display import STATUSES
from draftsman_testing.fake.markup import Markup, element, join

EMOJI: Final = {status.emoji_code: status.emoji for status in STATUSES.values()}
PART: Final = re.compile(
    r"```(?P<block>.*?)```|`(?P<code>[^`\n]+)`|<(?P<link>[^<>\n]+)>|(?P<emoji>:[a-z0-9_+-]+:)"
    r"|(?<![\w*])\*(?P<b>[^*\n]+)\*(?![\w*])|(?<!\w)_(?P<i>[^_\n]+)_(?!\w)"
    r"|(?<!\w)~(?P<s>[^~\n]+)~(?!\w)|(?P<br>\n)",
    re.DOTALL,
)
Names = Callable[[str], str]
"""The name of a person or channel with an id."""


def html(text: str, names: Names) -> Markup:
    """Return mrkdwn as HTML."""
    return join(*_parts(text, names))


def _parts(text: str, names: Names) -> Iterator[str]:
    end = 0
    for match in PART.finditer(text):
        yield unescape(text[end : match.start()])
        yield _part(match, names)
        end = match.end()
    yield unescape(text[end:])


def _part(match: re.Match[str], names: Names) -> str:
    kind = str(match.lastgroup)
    text = match[kind]
    match kind:
        case "block":
            return element("pre", unescape(text.strip("\n")))
        case "code":
            return element("code", unescape(text))
        case "link":
            return _link(text, names)
        case "emoji":
            return EMOJI.get(text, text)
        case "br":
            return element("br")
    return element(kind, html(text, names))


def _link(text: str, names: Names) -> str:
    target, _, label = text.partition("|")
    match target[:1]:
        case "@":
            return element("b", f"@{names(target[1:])}")
        case "#":
            return element("b", f"#{names(target[1:])}")
        case "!":
            return unescape(label or target[1:])
    if not target.startswith(("http://", "https://", "mailto:")):
        return unescape(label or target)
    return element("a", unescape(label or target), href=unescape(target), rel="noreferrer")
