"""How a handler ends: outcomes are returned, only failure is raised."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from draftsman.domain.text import REQUEST_LIMIT, clean_within_limit
from draftsman.errors import Failure, UsageError


@dataclass(frozen=True, slots=True)
class Done:
    """The work is finished; `result` is kept with the job."""

    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run again at `until`, or in so many seconds; spends nothing."""

    until: datetime | float


@dataclass(frozen=True, slots=True)
class Cancel:
    """The work turned out to be unwanted."""

    reason: str


Outcome = Done | Snooze | Cancel


def validate_result(outcome: object) -> dict[str, Any] | None:
    """Return the result of a Done, None for another outcome; raises Failure for neither."""
    if isinstance(outcome, Snooze | Cancel):
        return None
    if not isinstance(outcome, Done) or not isinstance(outcome.result, dict):
        text = "the handler returned no outcome; return Done({...}), Snooze(...) or Cancel(...)"
        raise Failure(text, declared="INVALID_OUTPUT")
    if not outcome.result:
        return {}
    try:
        return dict(clean_within_limit(outcome.result, REQUEST_LIMIT, "the result"))
    except UsageError as error:
        raise Failure(str(error), declared="INVALID_OUTPUT") from None


class Parked(BaseException):
    """The run wrote that it waits, and has to unwind now.

    Not an Exception: a handler's `except Exception` must not swallow it.
    """
