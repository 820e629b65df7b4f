"""Guard against keys for an earlier question, such as the repetitions of a held key."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

FIRST_REPEAT: Final = 0.75
"""Longest delay in seconds before a terminal repeats a key that is held."""
RELEASED: Final = 0.3
"""Seconds without a repetition after which a held key counts as released."""


class KeyGuard:
    """Tells a new press of a key from the repetitions of one that is held.

    Terminals report no release of a key, but repeat it while it is held.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._key = ""
        self._pressed_at = -math.inf
        self._last_at = -math.inf
        self._is_held = False

    def press(self, key: str) -> None:
        """Record a key or a click."""
        now = self.clock()
        pause = now - self._last_at
        self._is_held = key == self._key and pause < (RELEASED if self._is_held else FIRST_REPEAT)
        if not self._is_held:
            self._pressed_at = now
        self._key = key
        self._last_at = now

    def is_pressed_since(self, at: float) -> bool:
        """Return whether the last key was pressed, not only repeated, at this time or later."""
        return self._pressed_at >= at
