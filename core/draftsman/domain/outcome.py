"""How a handler ends: outcomes are returned, only failure is raised."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


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


class Parked(BaseException):
    """The run wrote that it waits, and has to unwind now.

    Not an Exception: a handler's `except Exception` must not swallow it.
    """
