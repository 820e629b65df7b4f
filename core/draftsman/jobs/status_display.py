"""How the statuses of a job are shown: words, emoji and meaning.

A front end has a color for each meaning. Enums of other statuses have their meanings beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from draftsman.jobs.job import WAITING, Status


class Meaning(StrEnum):
    """What a status means to its reader."""

    PENDING = "pending"
    """Waits for draftsman."""
    ACTIVE = "active"
    WAITING = "waiting"
    """Waits for a person."""
    WARNING = "warning"
    """Is held, or continues otherwise than planned."""
    SUCCESS = "success"
    FAILURE = "failure"
    DENIED = "denied"
    """Ended by the decision of a person, which is no fault."""
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class StatusDisplay:
    """How a status is shown."""

    word: str
    predicate: str
    """Follows the name of the job: `D-12 is a dead letter`."""
    meaning: Meaning
    emoji: str
    emoji_code: str


M = Meaning
S = Status
STATUSES: Final[Mapping[Status, StatusDisplay]] = {
    S.SCHEDULED: StatusDisplay("scheduled", "is scheduled", M.PENDING, "⏰", ":alarm_clock:"),
    S.QUEUED: StatusDisplay("queued", "is queued", M.PENDING, "⏳", ":hourglass_flowing_sand:"),
    S.CLAIMED: StatusDisplay("claimed", "is claimed", M.PENDING, "⏳", ":hourglass_flowing_sand:"),
    S.RUNNING: StatusDisplay("running", "is running", M.ACTIVE, "⚙️", ":gear:"),
    S.WAITING_FOR_INPUT: StatusDisplay(
        "waiting for input", "waits for an answer", M.WAITING, "❓", ":question:"
    ),
    S.WAITING_FOR_APPROVAL: StatusDisplay(
        "waiting for approval", "waits for an approval", M.WAITING, "❓", ":question:"
    ),
    S.RESUMED: StatusDisplay("resumed", "was resumed", M.PENDING, "⚙️", ":gear:"),
    S.RETRYING: StatusDisplay("retrying", "will be retried", M.WARNING, "🔁", ":repeat:"),
    S.COMPLETED: StatusDisplay("completed", "completed", M.SUCCESS, "✅", ":white_check_mark:"),
    S.FAILED: StatusDisplay("failed", "failed", M.FAILURE, "❌", ":x:"),
    S.DEAD_LETTER: StatusDisplay("dead letter", "is a dead letter", M.FAILURE, "❌", ":x:"),
    S.CANCELED: StatusDisplay("canceled", "was canceled", M.NEUTRAL, "🚫", ":no_entry_sign:"),
    S.EXPIRED: StatusDisplay("expired", "expired", M.FAILURE, "⏱️", ":stopwatch:"),
}
DENIED: Final = StatusDisplay("failed", "was denied", M.DENIED, "⛔", ":no_entry:")
"""A job that failed because a person denied it."""
PAUSED: Final = StatusDisplay("paused", "is paused", M.WARNING, "⏸️", ":double_vertical_bar:")
"""A job that is shown as paused, whatever it does once it is resumed."""


SHORT: Final[Mapping[Status, str]] = {
    S.WAITING_FOR_INPUT: "question",
    S.WAITING_FOR_APPROVAL: "approval",
}
"""The words of statuses in narrow columns."""
ALIASES: Final[Mapping[str, Sequence[str]]] = {
    S.WAITING_FOR_INPUT: (SHORT[S.WAITING_FOR_INPUT], "input", "asks", "asking", "waiting"),
    S.WAITING_FOR_APPROVAL: (SHORT[S.WAITING_FOR_APPROVAL], "gate", "asking", "waiting"),
    S.DEAD_LETTER: ("dead",),
    S.CANCELED: ("cancelled",),
    S.COMPLETED: ("done", "succeeded"),
}
"""Other words of statuses in filters."""


def named_statuses(name: str, statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the statuses of these that a word of a filter names, by alias if by none."""
    if name in statuses:
        return (name,)
    return tuple(status for status in statuses if name in ALIASES.get(status, ()))


def display_of(status: Status, *, denied: bool = False, paused: bool = False) -> StatusDisplay:
    """Return how a job is shown.

    `denied`: it failed because a person denied it; `paused`: it is shown as paused, with its
    status only if it waits for people even so.
    """
    if paused and status in WAITING:
        return replace(PAUSED, word=f"{PAUSED.word}; {STATUSES[status].word}")
    if paused:
        return PAUSED
    return DENIED if denied else STATUSES[status]
