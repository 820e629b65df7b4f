"""Rate limits of the Web API by method: docs.slack.dev/apis/web-api/rate-limits.

The fake allows the guaranteed calls, and no bursts: 20, 50 and 100 calls of a method a minute in
tiers 2 to 4.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from draftsman_testing.slack.world import World

MINUTE: Final = 60.0
TIERS: Final = {
    "chat.startStream": 20,
    "chat.stopStream": 20,
    "chat.update": 50,
    "chat.appendStream": 100,
}


class RateTiers:
    """The calls of the last minute, by method."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls: defaultdict[str, deque[float]] = defaultdict(deque)
        self.enforced = False

    def wait(self, method: str) -> float | None:
        """Count a call; return the seconds of its Retry-After if the limit is exceeded."""
        if not self.enforced or method not in TIERS:
            return None
        now = self._world.now()
        calls = self._calls[method]
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        if len(calls) >= TIERS[method]:
            return calls[0] + MINUTE - now
        calls.append(now)
        return None
