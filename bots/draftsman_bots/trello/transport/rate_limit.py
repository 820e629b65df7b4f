"""Client-side rate limits for Trello: windows of the key, the token and the member routes.

All calls of a process share a thread-safe RateLimiter. Trello sends its limits with each response,
and they replace the defaults. After a 429 no call is sent until the window ends, because 200
rejections in a window block the key.
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
"""Requests and seconds of each window: Trello's rate limits of January 2026."""
SHARE: Final = 0.9
"""Share of a limit to use, since Trello's windows start at other times."""
BACKGROUND: Final = "background"
BACKGROUND_SHARE: Final = 2 / 3
"""Share of the token's limit for background calls."""
MAX_WAIT: Final = 900.0
_background: ContextVar[bool] = ContextVar("background", default=False)
_LIMIT_HEADER: Final = re.compile(r"x-rate-limit-api-(key|token)-(interval-ms|max)")


@contextlib.contextmanager
def background() -> Iterator[None]:
    """Mark the calls in the block as background calls, which have a lower limit."""
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


@dataclass(slots=True)
class RateWindow:
    """Sliding window: `limit` calls in `seconds`, with the times of recent and reserved calls."""

    limit: int
    seconds: float
    reserved: deque[float] = field(default_factory=deque)
    blocked_until: float = 0.0

    def free_at(self, now: float) -> float:
        """Return when the next call may be sent."""
        while self.reserved and self.reserved[0] <= now - self.seconds:
            self.reserved.popleft()
        most = max(1, int(self.limit * SHARE))
        full = self.reserved[-most] + self.seconds if len(self.reserved) >= most else now
        return max(now, full, self.blocked_until)


class RateLimiter:
    """Rate limit windows of a key and a token."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._windows = {name: RateWindow(*limit) for name, limit in LIMITS.items()}
        self._windows[BACKGROUND] = RateWindow(*LIMITS[TOKEN])
        self._fit_background()

    def reserve(self, path: str, patience: float) -> tuple[float, bool]:
        """Reserve the next free time; return the seconds until then, and whether it was reserved.

        A time more than `patience` seconds away is not reserved.
        """
        with self._lock:
            now = self._now()
            windows = [self._windows[name] for name in _windows_of(path)]
            when = max(window.free_at(now) for window in windows)
            if when - now > patience:
                return when - now, False
            for window in windows:
                insort(window.reserved, when)
            return when - now, True

    def update_limits(self, headers: Mapping[str, str]) -> None:
        """Apply the limits in a response's headers."""
        with self._lock:
            for name, value in headers.items():
                match = _LIMIT_HEADER.fullmatch(name.lower())
                if match is None or not value.isdigit() or not 0 < int(value) < 1e9:
                    continue
                window = self._windows[match[1]]
                if match[2] == "max":
                    window.limit = int(value)
                else:
                    window.seconds = int(value) / 1000
            self._fit_background()

    def _fit_background(self) -> None:
        token = self._windows[TOKEN]
        window = self._windows[BACKGROUND]
        window.limit = int(token.limit * BACKGROUND_SHARE)
        window.seconds = token.seconds

    def record_rejection(self, path: str, code: str | None, retry_after: float | None) -> float:
        """Block the window whose limit was reached; return the seconds."""
        with self._lock:
            name = _rejected_window(path, code)
            window = self._windows[name]
            wait = window.seconds if retry_after is None else retry_after
            wait = max(0.0, min(wait, MAX_WAIT))
            window.blocked_until = max(window.blocked_until, self._now() + wait)
            return wait


def _windows_of(path: str) -> tuple[str, ...]:
    names = (KEY, TOKEN, MEMBERS) if path.startswith("/members/") else (KEY, TOKEN)
    return (*names, BACKGROUND) if _background.get() else names


def _rejected_window(path: str, code: str | None) -> str:
    if code is not None and "KEY" in code:
        return KEY
    if path.startswith("/members/") and (code is None or "TOKEN" not in code):
        return MEMBERS
    return TOKEN
