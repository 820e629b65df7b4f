"""The part of a CI log that shows why it failed. Pure."""

from __future__ import annotations

import re
from typing import Final

from draftsman.log import redact

LIMIT: Final = 6000
"""Maximum characters of the part."""
AFTER: Final = 12
BEFORE: Final = 6
"""Lines around each line that looks like an error."""
_ANSI: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*\x07|section_(?:start|end):\S{0,200}\r"
)
_TIME: Final = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ?", re.MULTILINE)
_ERROR: Final = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|traceback|exception|panicked|assertionerror)\b"
    r"|^E\s{2,}|##\[error\]|\bFAILED\b|✕|✗",
    re.IGNORECASE,
)
_NOISE: Final = re.compile(
    r"\b0 (?:errors|failed|failures)\b|##\[(?:group|endgroup|command)\]", re.I
)


def relevant_part(log: str, limit: int = LIMIT) -> str:
    """Return the lines around errors, the last first to be kept; without errors the end.

    Colors, the time of each line and secrets are removed. A gap is shown as `…`.
    """
    text = _TIME.sub("", _ANSI.sub("", log)).replace("\r\n", "\n").replace("\r", "\n")
    lines = [redact(line.rstrip())[:500] for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    hits = [n for n, line in enumerate(lines) if _ERROR.search(line) and not _NOISE.search(line)]
    kept: set[int] = set()
    size = 0
    for hit in reversed(hits or [len(lines) - 1]):
        before = BEFORE if hits else len(lines)
        block = range(min(hit + AFTER, len(lines) - 1), max(hit - before, 0) - 1, -1)
        for place in block:
            if place in kept:
                continue
            size += len(lines[place]) + 1
            if size > limit - 100:
                return _joined(lines, kept)
            kept.add(place)
    return _joined(lines, kept)


def _joined(lines: list[str], kept: set[int]) -> str:
    rows: list[str] = []
    last = -1
    for place in sorted(kept):
        if place != last + 1:
            rows.append("…")
        rows.append(lines[place])
        last = place
    return "\n".join(rows).strip("\n")
