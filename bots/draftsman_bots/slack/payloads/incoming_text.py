"""Incoming text as its author sees it. Pure."""

from __future__ import annotations

import re
from typing import Final

from draftsman_bots.slack.deliveries.mrkdwn import unescape

_URL: Final = re.compile(r"<((?:https?|ssh|git|mailto):[^<>|\s]*)(?:\|([^<>]*))?>")
_MENTION: Final = re.compile(r"<([@#])[A-Z0-9]+\|([^<>|]+)>")


def readable_text(incoming: str) -> str:
    """Return incoming text as its author sees it: links expanded, unescaped once."""
    expanded = _MENTION.sub(r"\1\2", _URL.sub(_link, incoming))
    return unescape(expanded)


def _link(match: re.Match[str]) -> str:
    address, label = match[1].removeprefix("mailto:"), match[2]
    if not label or label in address:
        return address
    return f"{label} ({address})"
