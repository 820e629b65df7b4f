"""Faults of the fake Slack, by method."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from draftsman_testing.fake import faults
from draftsman_testing.fake.faults import ANY


class Fault(faults.Fault):
    """Slack's faults, besides those of every fake."""

    GARBAGE_AFTER: ClassVar = faults.Fault("garbage after")

    @staticmethod
    def RATE_LIMIT(seconds: float) -> faults.Fault:  # noqa: N802
        """Respond with 429 and this Retry-After."""
        return faults.Fault("rate limit", seconds)


def error(code: str, status: int = 200) -> faults.Fault:
    """Respond with this error and HTTP status."""
    return faults.Fault("error", code=code, status=status)


class Faults(faults.Faults[str]):
    """The faults of methods, of a response_url ("response_url") and of an upload ("upload")."""

    def next(self, method: str, fault: faults.Fault, times: int = 1) -> None:
        """Queue faults for the next calls of this method (ANY: of all); PASS is no fault."""
        self._queues[method].extend([fault] * times)

    def _queue(self, call: str) -> deque[faults.Fault] | None:
        return self._queues.get(call) or self._queues.get(ANY)
