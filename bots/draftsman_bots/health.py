"""What is wrong with a bot now, and what people should know of it.

Being alive and being ready are two things: a bot whose account was switched off is alive, and a
restart mends nothing, so only readiness turns red and says what to do.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Final

WARNING_INTERVAL: Final = 60.0
"""Seconds between two lines about the same thing that strangers can make happen."""
_log = logging.getLogger(__name__)


class HealthState:
    """The state of one bot."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._fades: dict[str, float] = {}
        """When notes are over by themselves, by the monotonic clock."""
        self._quiet: set[str] = set()
        self._said: dict[str, float] = {}

    def pending(self, key: str, text: str) -> None:
        """Be not ready until `clear`, as at every start: no line says so."""
        self._problems[key] = text
        self._quiet.add(key)

    def problem(self, key: str, text: str) -> None:
        """Turn red until `clear`; a line says so once."""
        if self._problems.get(key) != text or key in self._quiet:
            _log.error("%s", text)
        self._problems[key] = text
        self._quiet.discard(key)

    def note(self, key: str, text: str, seconds: float = math.inf) -> None:
        """Show what people should know and what stops no work, for so long."""
        self._fades[key] = time.monotonic() + seconds
        if self._notes.get(key) != text:
            _log.warning("%s", text)
        self._notes[key] = text

    def info(self, key: str, text: str) -> None:
        """Show what is so by its nature, as at every start: no line says so."""
        self._fades[key] = math.inf
        self._notes[key] = text
        self._quiet.add(key)

    def clear(self, *keys: str) -> None:
        """Forget problems and notes that are over."""
        for key in keys:
            if text := self._problems.pop(key, None) or self._notes.pop(key, None):
                if key not in self._quiet:
                    _log.warning("resolved: %s", text)
                self._quiet.discard(key)

    def rate_limited_warning(self, reason: str, text: str) -> None:
        """Say it in a line, at most once a minute for a reason."""
        now = time.monotonic()
        if now - self._said.get(reason, -WARNING_INTERVAL) >= WARNING_INTERVAL:
            self._said[reason] = now
            _log.warning("%s", text)

    @property
    def ready(self) -> bool:
        """Whether nothing is wrong."""
        return not self._problems

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong, by what it is about."""
        return dict(self._problems)

    @property
    def notes(self) -> dict[str, str]:
        """What people should know."""
        now = time.monotonic()
        self.clear(*(key for key in list(self._notes) if self._fades[key] <= now))
        return dict(self._notes)
