"""Outcomes that a handler returns; failures are raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from draftsman.errors import Failure, UsageError
from draftsman.results import stored_values
from draftsman.text import REQUEST_LIMIT, clean_within_limit


@dataclass(frozen=True, slots=True)
class Done:
    """The job completed; `result` is stored with it."""

    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run again at `until`, or after `until` seconds; does not count as an attempt."""

    until: datetime | float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the job: its work is not needed."""

    reason: str


Outcome = Done | Snooze | Cancel


def validate_result(outcome: object) -> dict[str, Any] | None:
    """Return the result of a Done, or None for another outcome; raises Failure if it is invalid."""
    if isinstance(outcome, Snooze | Cancel):
        if problem := _problem(outcome):
            raise Failure(problem, declared="INVALID_OUTPUT")
        return None
    if not isinstance(outcome, Done) or not isinstance(outcome.result, dict):
        text = "the handler returned no outcome; return Done({...}), Snooze(...) or Cancel(...)"
        raise Failure(text, declared="INVALID_OUTPUT")
    if not outcome.result:
        return {}
    try:
        return dict(clean_within_limit(stored_values(outcome.result), REQUEST_LIMIT, "the result"))
    except UsageError as error:
        raise Failure(str(error), declared="INVALID_OUTPUT") from None


def _problem(outcome: Snooze | Cancel) -> str | None:
    """Return why an outcome of a handler, of any types, could not be stored."""
    if isinstance(outcome, Cancel):
        reason: object = outcome.reason
        text = f"Cancel() takes a reason as text, not {reason!r:.100}"
        return None if isinstance(reason, str) else text
    until: object = outcome.until
    if isinstance(until, datetime):
        text = "Snooze() needs a time with a time zone, e.g. datetime.now(UTC)"
        return text if until.tzinfo is None else None
    if isinstance(until, int | float) and not isinstance(until, bool):
        return None
    return f"Snooze() takes a time or a number of seconds, not {until!r:.100}"


class Parked(BaseException):
    """The run is parked and has to unwind.

    A worker cancels the handler's task instead; code without one, such as a call after the pause,
    gets this. Derives from BaseException so that a handler's `except Exception` does not catch it.
    """


def caught_pause_text(handler: str, ended: str) -> str:
    """Return the error of a handler that went on after its run had paused.

    `ended` tells how it ended: `returned Done`, `raised KeyError`.
    """
    return (
        f"{handler} {ended} after its run had paused; this was ignored, and the job waits as asked."
        " Let the pause pass through the handler: around ctx.ask, ctx.approve, ctx.sleep and"
        " ctx.gather, raise again each BaseException that you catch, and do not return in finally"
    )


def unasked_text(keys: Sequence[str]) -> str:
    """Return the error of a handler that returned before its questions were asked."""
    names = ", ".join(map(repr, keys))
    return (
        f"the handler returned while it was about to ask {names}; await each ctx.ask and"
        " ctx.approve, or cancel its task before you return"
    )
