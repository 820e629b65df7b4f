"""Items of a log as lines, and their position as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from draftsman.agent_runs.activity.activity_text import activity_text
from draftsman.agent_runs.activity.service.log_feed import LogCursor
from draftsman.agent_runs.activity.stream import TEXT_KINDS, ActivityRow
from draftsman_bots.text import replace_invisible

_CURSOR: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})-([0-9]{1,9})\.([0-9]{1,9})")
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
"""Sequences that color or move the text of a terminal."""


def log_lines(items: Iterable[Any]) -> list[tuple[str, str]]:
    """Return (kind, text) of lines: `output`, or the kind of activity."""
    lines: list[tuple[str, str]] = []
    open_kind = ""
    for item in items:
        kind, text = item_text(item)
        if open_kind == kind and lines:
            lines[-1] = (kind, lines[-1][1] + text)
        else:
            lines.append((kind, text))
        open_kind = "" if text.endswith("\n") or kind not in ("output", "message") else kind
    return [(kind, text.removesuffix("\n")) for kind, text in lines if text.strip("\n")]


def item_text(item: Any) -> tuple[str, str]:
    """Return the kind of an item and its text, without control sequences."""
    if not isinstance(item, ActivityRow):
        return "output", visible(item.text)
    text = activity_text(item)
    if item.kind not in TEXT_KINDS:
        text = " ".join(text.split())
    return str(item.kind), visible(text)


def visible(text: str) -> str:
    """Return a text without sequences of terminals; other control characters are replaced."""
    return replace_invisible(_ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def encode_cursor(cursor: LogCursor) -> str:
    """Return a position as text: `1.7-1.3`."""
    return "-".join(f"{run}.{seq}" for run, seq in (cursor.output, cursor.activity))


def parse_cursor(text: str) -> LogCursor:
    """Return the position of a text; the start of the log for any other text."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        return LogCursor()
    chunk_run, chunk_seq, row_run, row_seq = map(int, match.groups())
    return LogCursor((chunk_run, chunk_seq), (row_run, row_seq))
