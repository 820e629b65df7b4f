"""Rate limits by key, by token and for /members, and the lockout of a client that does not stop.

Source: developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits (26 January 2026): 300
requests in 10 s for a key, 100 for a token, 100 in 900 s for /members, and 429 for everything until
the end of a window with 200 replies of 429. It names no headers; those of recordings from 2020 to
2022 are as in trello-talk/Taco#45.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

Header = dict[str, str]
REFUSALS: Final = 200
"""Responses with 429 in a window after which every response is 429 until the window ends."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Trello's limits: counts of requests, and windows in seconds."""

    key: int = 300
    token: int = 100
    window: float = 10.0
    members: int = 100
    members_window: float = 900.0
    refusals: int = REFUSALS
    told: bool = False
    """Whether responses have headers with the limits, as in old recordings."""


@dataclass
class Window:
    """The recent requests of a kind."""

    name: str
    most: int
    seconds: float
    times: deque[float] = field(default_factory=deque)

    def left(self, now: float) -> int:
        """Return the number of requests that are left."""
        while self.times and self.times[0] <= now - self.seconds:
            self.times.popleft()
        return self.most - len(self.times)


class Meter:
    """Counts requests; None for no limits at all."""

    def __init__(self, limits: Limits | None) -> None:
        self._limits = limits
        self.refused = 0
        """Answers of 429 since the beginning."""
        values = limits or Limits()
        self._key = Window("API_KEY_LIMIT_EXCEEDED", values.key, values.window)
        self._token = Window("API_TOKEN_LIMIT_EXCEEDED", values.token, values.window)
        self._members = Window("API_MEMBER_LIMIT_EXCEEDED", values.members, values.members_window)
        self._refusals = Window("API_KEY_LIMIT_EXCEEDED", values.refusals, values.window)

    def over(self, path: str, now: float) -> str | None:
        """Count a request; return the code of the limit that it is over, or None.

        A refused request counts as well, the stricter of two readings: no source says.
        """
        if self._limits is None:
            return None
        windows = [self._key, self._token]
        if path.startswith("/members/"):
            windows.append(self._members)
        spent = [window for window in windows if window.left(now) <= 0]
        if self._refusals.left(now) <= 0:
            spent.insert(0, self._refusals)
        for window in windows:
            window.times.append(now)
        if spent:
            self.refused += 1
            self._refusals.times.append(now)
            return spent[0].name
        return None

    def headers(self, now: float) -> Header:
        """Return the rate limit headers of every response; there is no Retry-After."""
        if self._limits is None or not self._limits.told:
            return {}
        headers: Header = {}
        for name, window in (("Key", self._key), ("Token", self._token)):
            start = f"X-Rate-Limit-Api-{name}"
            headers[f"{start}-Interval-Ms"] = str(round(window.seconds * 1000))
            headers[f"{start}-Max"] = str(window.most)
            headers[f"{start}-Remaining"] = str(max(0, window.left(now)))
        return headers
