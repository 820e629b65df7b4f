"""Rate limits of requests by key, in the memory of the process."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

MAX_KEYS: Final = 10_000
"""Keys that are remembered; the least recently used is dropped."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RequestLimit:
    """At most `count` requests of a key in `seconds`, spread evenly after a first burst."""

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._count = count
        self._rate = count / seconds
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> int:
        """Count a request; return 0, or the seconds after which the next request is allowed."""
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(float(self._count), now)
        self._buckets[key] = bucket
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._count, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens < 1:
            return math.ceil((1 - bucket.tokens) / self._rate)
        bucket.tokens -= 1
        return 0
