"""Text within the limits of Slack and Trello. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from draftsman.formats import truncation
from draftsman.formats.invisible import escape_invisible
from draftsman.formats.truncation import utf16_length

_FENCE: Final = re.compile("`{3,}")


def truncate(text: str, max_length: int) -> str:
    """Return visible text within a length in UTF-16 code units, which Slack and Trello count."""
    return truncation.truncate(escape_invisible(text), max_length, utf16_length)


def join_within(units: Iterable[str], max_length: int) -> str:
    """Join units as `truncate`."""
    return truncation.join_within(units, max_length, utf16_length)


def break_fences(text: str) -> str:
    """Break up code fences: truncated, an open fence would swallow the text after it."""
    return _FENCE.sub(lambda match: "\u200b".join(match[0]), text)
