"""Checks of a commit, in the words of each forge, and whether they allow a merge. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from draftsman.formats.amounts import counted
from draftsman.log import redact

STATUS_NAME: Final = "draftsman"
"""Name of the commit status that draftsman sets itself."""
SHOWN: Final = 3
"""Maximum number of checks that a message names."""


class CheckState(StrEnum):
    """State of a check."""

    PASSED = "passed"
    PENDING = "pending"
    FAILED = "failed"
    NO_RESULT = "no_result"
    """It was canceled, or waits for people: not passed, and nothing that a change repairs."""


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """A check or commit status."""

    name: str
    state: CheckState


PASSED: Final = frozenset({"success", "neutral", "skipped"})
NO_RESULT: Final = frozenset({"cancelled", "canceled", "action_required", "stale"})
PENDING: Final = frozenset(
    {
        "",
        "pending",
        "queued",
        "in_progress",
        "waiting",
        "requested",
        "expected",
        "created",
        "running",
        "preparing",
        "scheduled",
        "waiting_for_resource",
        "manual",
        "canceling",
    }
)


VERBS: Final = {
    CheckState.FAILED: "failed",
    CheckState.NO_RESULT: "ended without a result",
    CheckState.PENDING: "not finished",
}
"""States that prevent a merge, in the order in which they count, and what the checks did."""


def check_of(name: str, word: str | None) -> CommitCheck:
    """Return a check; a word that no forge is known to use counts as failed."""
    word = (word or "").lower()
    if word in PASSED:
        return CommitCheck(name, CheckState.PASSED)
    if word in NO_RESULT:
        return CommitCheck(name, CheckState.NO_RESULT)
    return CommitCheck(name, CheckState.PENDING if word in PENDING else CheckState.FAILED)


def overall(checks: Sequence[CommitCheck]) -> tuple[CheckState, str]:
    """Return the state of all checks, and the checks that explain it; none at all have failed.

    The status of draftsman is no check of its own work: it can fail the others, and not replace
    them.
    """
    other_checks = foreign(checks)
    for state, verb in VERBS.items():
        if names := sorted({check.name for check in checks if check.state is state}):
            omission = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            return state, f"{', '.join(names[:SHOWN])}{omission} {verb}"
    if not other_checks:
        besides = f" besides the status {STATUS_NAME}" if checks else ""
        return CheckState.FAILED, f"it has no checks{besides}"
    count = len(other_checks)
    return CheckState.PASSED, f"{counted(count, 'check')} passed"


def foreign(checks: Sequence[CommitCheck]) -> list[CommitCheck]:
    """Return the checks that are not draftsman's own."""
    return [check for check in checks if check.name != STATUS_NAME]


# The part of a CI log that shows why it failed.


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
    numbers: set[int] = set()
    size = 0
    for hit in reversed(hits or [len(lines) - 1]):
        before = BEFORE if hits else len(lines)
        block = range(min(hit + AFTER, len(lines) - 1), max(hit - before, 0) - 1, -1)
        for number in block:
            if number in numbers:
                continue
            size += len(lines[number]) + 1
            if size > limit - 100:
                return _joined(lines, numbers)
            numbers.add(number)
    return _joined(lines, numbers)


def _joined(lines: list[str], numbers: set[int]) -> str:
    rows: list[str] = []
    last = -1
    for number in sorted(numbers):
        if number != last + 1:
            rows.append("…")
        rows.append(lines[number])
        last = number
    return "\n".join(rows).strip("\n")
