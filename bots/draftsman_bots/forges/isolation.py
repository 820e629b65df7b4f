"""Repositories of a forge, of which one that fails does not hold up the others."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from draftsman.errors import Failure

if TYPE_CHECKING:
    from draftsman_bots.process.health import HealthState

LIMITED: Final = 60.0
"""Seconds without calls after a failure that names no time."""
SILENT: Final = 2
"""Repositories in a row without an answer after which the forge itself counts as out of order."""


class RepoIsolation:
    """Work on the repositories of a forge, each of which is paused after a failure of its own.

    A refused token concerns the forge. So do timeouts, errors of the server and rate limits, unless
    other repositories are answered.
    """

    def __init__(self, forge: str, health: HealthState) -> None:
        self._forge = forge
        self._health = health
        self._paused: dict[str, float] = {}
        self._silent: dict[str, Failure] = {}
        self._is_answered = False
        self._is_complete = True

    def begin(self) -> None:
        """Begin a round."""
        self._silent.clear()
        self._is_answered = False
        self._is_complete = True

    async def attempt(self, project: str, part: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do something in a repository; its failure is a note. Raises that of the forge."""
        if self._paused.get(project, 0.0) > time.monotonic():
            self._is_complete = False
            return
        key = f"{self._forge}: {project}{part}"
        try:
            await work()
        except Failure as error:
            if error.http_status == 401 or error.code == "no_secret":
                raise
            self._health.note(key, f"forge {self._forge}: {project}{part} failed: {error}")
            if is_answer(error):
                self._answered()
                return
            seconds = LIMITED if error.retry_after is None else error.retry_after
            # longer than the forge is paused, so that the others are tried first
            self._paused[project] = time.monotonic() + 2 * seconds
            self._silent[project] = error
            if len(self._silent) >= SILENT:
                raise
        else:
            self._answered()
            self._health.clear(key)

    def end(self) -> bool:
        """Return whether the forge is known to work; raises its failure if it never answered."""
        if self._silent and not self._is_answered:
            raise next(iter(self._silent.values()))
        return self._is_answered or self._is_complete

    def _answered(self) -> None:
        self._silent.clear()
        self._is_answered = True


def is_answer(error: Failure) -> bool:
    """Return whether the forge has answered about this repository."""
    status = error.http_status
    return status is not None and status < 500 and error.code != "rate_limited"
