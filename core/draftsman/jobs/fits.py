"""The rows that can be changed, and the refusal of the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from draftsman.errors import Hint, Refused
from draftsman.ids import job_name
from draftsman.jobs.job import FAILURES, TERMINAL, Status
from draftsman.text import humanize


@dataclass(frozen=True, slots=True)
class Fit:
    """The statuses that a change fits; `otherwise` is the refusal, with a place `{}` for a status.

    Services refuse by it under their locks, and front ends before they ask for a confirmation.
    """

    statuses: Collection[str]
    otherwise: str
    unless: Callable[[Any], str] = lambda _: ""
    """Returns the refusal of a row in one of these statuses; "" for one that the change fits."""

    def problem(self, row: Any) -> str:
        """Return why the change does not fit a row, which has a `status`; "" if it fits."""
        if row.status not in self.statuses:
            return self.otherwise.format(humanize(row.status))
        return self.unless(row)

    def refusal(self, name: str, status: str, hint: Hint | None = None) -> Refused:
        """Return the error for a row in a status that the change does not fit."""
        return Refused(self.otherwise.format(humanize(status)), subject=name, hint=hint)

    def check(self, name: str, status: str) -> None:
        """Raise Refused unless the change fits the row."""
        if status not in self.statuses:
            raise self.refusal(name, status)


def not_open(retried_as: int | None, dismissal: object | None, *, denied: bool) -> str:
    """Return why a failure needs no person any more; "" for an open one."""
    if retried_as is not None:
        return f"was retried as {job_name(retried_as)}; nothing to dismiss"
    if dismissal is not None:
        return f"was already dismissed {dismissal}"
    return "was denied by a person; nothing to dismiss" if denied else ""


LIVE: Final = frozenset(Status) - TERMINAL
CANCELABLE: Final = Fit(LIVE, "is already {}; nothing to cancel")
PAUSABLE: Final = Fit(LIVE, "is already {}; nothing to pause")
MESSAGED: Final = Fit(LIVE, "is {}, and takes no more messages")
"""A finished job takes messages while its pull request is open."""
RETRYABLE: Final = Fit(TERMINAL, "is {}, not finished; cancel it first")
DISMISSABLE: Final = Fit(
    FAILURES,
    "is {}, not failed; nothing to dismiss",
    lambda job: not_open(job.retried_as, job.dismissal, denied=job.is_denied),
)
UNDISMISSABLE: Final = Fit(
    FAILURES,
    "is {}, not failed; nothing to take back",
    lambda job: "is not dismissed" if job.dismissal is None else "",
)
REVISABLE: Final = Fit(TERMINAL, "is {}; to change its work, reply in its thread")
MOVABLE: Final = Fit({Status.QUEUED, Status.RESUMED}, "is {}; only queued jobs have a place")
PRIORITIZED: Final = Fit(
    {*MOVABLE.statuses, Status.SCHEDULED, Status.RETRYING},
    "is {}; its priority has no effect any more",
)
