"""Statuses in which something can be changed, and the refusal in the others. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from draftsman.errors import Hint, Refused
from draftsman.jobs.job import FAILURES, TERMINAL, Status
from draftsman.text import humanize


@dataclass(frozen=True, slots=True)
class Fit:
    """The statuses that a change fits; `otherwise` is the refusal, with a place `{}` for a status.

    Services refuse by it under their locks, and front ends before they ask for a confirmation.
    """

    statuses: Collection[str]
    otherwise: str

    def refusal(self, name: str, status: str, hint: Hint | None = None) -> Refused:
        """Return the error for a row in a status that the change does not fit."""
        return Refused(self.otherwise.format(humanize(status)), subject=name, hint=hint)

    def check(self, name: str, status: str) -> None:
        """Raise Refused unless the change fits the row."""
        if status not in self.statuses:
            raise self.refusal(name, status)


LIVE: Final = frozenset(Status) - TERMINAL
CANCELABLE: Final = Fit(LIVE, "is already {}; nothing to cancel")
PAUSABLE: Final = Fit(LIVE, "is already {}; nothing to pause")
MESSAGED: Final = Fit(LIVE, "is {}, and takes no more messages")
"""A finished job takes messages while its pull request is open."""
RETRYABLE: Final = Fit(TERMINAL, "is {}, not finished; cancel it first")
DISMISSABLE: Final = Fit(FAILURES, "is {}, not failed; nothing to dismiss")
REVISABLE: Final = Fit(TERMINAL, "is {}; to change its work, reply in its thread")
MOVABLE: Final = Fit({Status.QUEUED, Status.RESUMED}, "is {}; only queued jobs have a place")
PRIORITIZED: Final = Fit(
    {*MOVABLE.statuses, Status.SCHEDULED, Status.RETRYING},
    "is {}; its priority has no effect any more",
)
