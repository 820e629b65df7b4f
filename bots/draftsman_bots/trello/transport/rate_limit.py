"""How often Trello may be asked: the windows of the key, the token and the members' pages.

One Pace is shared by all calls of a process, from any thread. Trello says its limits with each
reply, and those it says count; two hundred refusals in a window shut everybody out, so that after
the first one nothing is asked until the window is over.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

KEY: Final = "key"
TOKEN: Final = "token"  # noqa: S105 - the name of a window
MEMBERS: Final = "members"
LIMITS: Final = {KEY: (300, 10.0), TOKEN: (100, 10.0), MEMBERS: (100, 900.0)}
"""Requests, and in how many seconds: Trello's rate limits of January 2026."""
SHARE: Final = 0.9
"""Of a limit, what is used: their window and ours do not begin at once."""
BACKGROUND: Final = "background"
BACKGROUND_SHARE: Final = 2 / 3
"""The part of a token's limit that background work may use: the rest is for everything else."""
MAX_WAIT: Final = 900.0
_background: ContextVar[bool] = ContextVar("background", default=False)
_SAID: Final = re.compile(r"x-rate-limit-api-(key|token)-(interval-ms|max)")


@contextlib.contextmanager
def background() -> Iterator[None]:
    """Mark the calls made inside as background work, which leaves room for other calls."""
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


@dataclass(slots=True)
class RateWindow:
    """So many in so many seconds, and when the last ones are or were."""

    limit: int
    seconds: float
    reserved: deque[float] = field(default_factory=deque)
    blocked_until: float = 0.0

    def free_at(self, now: float) -> float:
        """Return when the next one may be."""
        while self.reserved and self.reserved[0] <= now - self.seconds:
            self.reserved.popleft()
        most = max(1, int(self.limit * SHARE))
        full = self.reserved[-most] + self.seconds if len(self.reserved) >= most else now
        return max(now, full, self.blocked_until)


class RateLimiter:
    """The windows of one key and one token."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._windows = {name: RateWindow(*limit) for name, limit in LIMITS.items()}
        self._windows[BACKGROUND] = RateWindow(*LIMITS[TOKEN])
        self._fit_background()

    def reserve(self, path: str, patience: float) -> tuple[float, bool]:
        """Take the next free place; return the seconds until it, and whether it was taken.

        It is not where it is further off than `patience` seconds.
        """
        with self._lock:
            now = self._now()
            windows = [self._windows[name] for name in _of(path)]
            when = max(window.free_at(now) for window in windows)
            if when - now > patience:
                return when - now, False
            for window in windows:
                insort(window.reserved, when)
            return when - now, True

    def update_limits(self, headers: Mapping[str, str]) -> None:
        """Take in the limits that a reply tells."""
        with self._lock:
            for name, value in headers.items():
                match = _SAID.fullmatch(name.lower())
                if match is None or not value.isdigit() or not 0 < int(value) < 1e9:
                    continue
                window = self._windows[match[1]]
                if match[2] == "max":
                    window.limit = int(value)
                else:
                    window.seconds = int(value) / 1000
            self._fit_background()

    def _fit_background(self) -> None:
        token, mine = self._windows[TOKEN], self._windows[BACKGROUND]
        mine.limit, mine.seconds = int(token.limit * BACKGROUND_SHARE), token.seconds

    def record_rejection(self, path: str, code: str | None, retry_after: float | None) -> float:
        """Close the window whose limit was reached; return for how many seconds."""
        with self._lock:
            name = _named(path, code)
            window = self._windows[name]
            wait = window.seconds if retry_after is None else retry_after
            wait = max(0.0, min(wait, MAX_WAIT))
            window.blocked_until = max(window.blocked_until, self._now() + wait)
            return wait


def _of(path: str) -> tuple[str, ...]:
    names = (KEY, TOKEN, MEMBERS) if path.startswith("/members/") else (KEY, TOKEN)
    return (*names, BACKGROUND) if _background.get() else names


def _named(path: str, code: str | None) -> str:
    if code is not None and "KEY" in code:
        return KEY
    if path.startswith("/members/") and (code is None or "TOKEN" not in code):
        return MEMBERS
    return TOKEN
