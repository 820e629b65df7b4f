"""Checks of a commit, in the words of each forge, and whether they allow a merge. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

STATUS_NAME: Final = "draftsman"
"""Name of the commit status that draftsman sets itself."""
SHOWN: Final = 3
"""Maximum number of checks that a message names."""


class CheckState(StrEnum):
    """State of a check."""

    PASSED = "passed"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """A check or commit status."""

    name: str
    state: CheckState


PASSED: Final = frozenset({"success", "neutral", "skipped"})
PENDING: Final = frozenset(
    {
        *("", "pending", "queued", "in_progress", "waiting", "requested", "expected"),
        *("created", "running", "preparing", "scheduled", "waiting_for_resource", "manual"),
    }
)


def check_of(name: str, word: str | None) -> CommitCheck:
    """Return a check; a word that no forge is known to use counts as failed."""
    word = (word or "").lower()
    if word in PASSED:
        return CommitCheck(name, CheckState.PASSED)
    return CommitCheck(name, CheckState.PENDING if word in PENDING else CheckState.FAILED)


def overall(checks: Sequence[CommitCheck]) -> tuple[CheckState, str]:
    """Return the state of all checks, and the checks that explain it; none at all have failed.

    The status of draftsman is no check of its own work: it can fail the others, and not replace
    them.
    """
    others = foreign(checks)
    for state in (CheckState.FAILED, CheckState.PENDING):
        if names := sorted({check.name for check in checks if check.state is state}):
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            return state, f"{', '.join(names[:SHOWN])}{more} {_verb(state)}"
    if not others:
        besides = f" besides the status {STATUS_NAME}" if checks else ""
        return CheckState.FAILED, f"it has no checks{besides}"
    return CheckState.PASSED, f"{len(others)} check{'' if len(others) == 1 else 's'} passed"


def foreign(checks: Sequence[CommitCheck]) -> list[CommitCheck]:
    """Return the checks that are not draftsman's own."""
    return [check for check in checks if check.name != STATUS_NAME]


def _verb(state: CheckState) -> str:
    return "failed" if state is CheckState.FAILED else "not finished"
