"""Text within the limits of Slack and Trello. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from draftsman.deliveries.documents.document import Span, Text
from draftsman.formats import truncation
from draftsman.formats.invisible import replace_invisible
from draftsman.formats.truncation import ELLIPSIS, utf16_length

_FENCE: Final = re.compile("`{3,}")


def truncate(text: str, max_length: int) -> str:
    """Return visible text within a length in UTF-16 code units, which Slack and Trello count."""
    return truncation.truncate(replace_invisible(text), max_length, utf16_length)


def join_within(units: Iterable[str], max_length: int) -> str:
    """Join units as `truncate`."""
    return truncation.join_within(units, max_length, utf16_length)


def truncate_spans(spans: Iterable[Span], max_length: int) -> Text:
    """Return the spans within a length of their plain text, as `truncate`."""
    fitting: list[Span] = []
    room = max_length
    for span in spans:
        length = utf16_length(str(span))
        if length > room:
            fitting.append(truncate(span, room) if isinstance(span, str) and room else ELLIPSIS)
            break
        fitting.append(span)
        room -= length
    return tuple(fitting)


def break_fences(text: str) -> str:
    """Break up code fences: truncated, an open fence would swallow the text after it."""
    return _FENCE.sub(lambda match: "\u200b".join(match[0]), text)
