"""Limits in plain Python: which starts each limit allows, from the times of all earlier starts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass
class Limit:
    """The limit of a value, or of each value (`*`)."""

    running: int | None = None
    rate: int | None = None
    period: int = 1
    burst: int | None = None


@dataclass
class Limits:
    """The configured limits, and the times of the starts in each bucket."""

    by_scope: dict[str, dict[str, Limit]] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    partitions: dict[str, str] = field(default_factory=dict)
    """What the jobs of a queue are partitioned by."""
    released_keys: bool = False
    """Whether a job gives up its key while it waits for a person."""

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Limits:
        """Read settings as `[limits]` has them."""
        limits = cls()
        for scope, values in settings.items():
            for value, items in ({"*": values} if scope == "all" else values).items():
                limits.released_keys |= items.get("release_while_waiting", False)
                if "partition" in items:
                    limits.partitions[value] = items["partition"]
                count, _, period = items.get("rate", "").partition("/")
                limit = Limit(items.get("running"), burst=items.get("burst"))
                if count:
                    limit.rate = int(count)
                    limit.period = int(period[:-1]) * SECONDS[period[-1]]
                if limit.running or limit.rate:
                    limits.by_scope.setdefault(scope, {})[value] = limit
        return limits

    def replace(self, new: Limits) -> None:
        """Take over other limits; a bucket keeps the starts of a sliding window."""
        kept = {}
        for bucket, starts in self.starts.items():
            old = self.find(bucket)
            limit = new.find(bucket)
            windows = bool(limit and old and limit.rate and old.rate)
            windows = windows and not (limit and limit.burst) and not (old and old.burst)
            if windows or (limit == old and limit is not None):
                kept[bucket] = starts
        self.by_scope = new.by_scope
        self.partitions = new.partitions
        self.released_keys = new.released_keys
        self.starts.clear()
        self.starts.update(kept)

    def partition(self, queue: str) -> str | None:
        """Return what the jobs of a queue are partitioned by."""
        return self.partitions.get(queue, self.partitions.get("*"))

    def buckets(self, **values: str | None) -> list[str]:
        """Return the buckets of a job with these values; `repo` is `host/owner/name`."""
        names = []
        for scope, value in {**values, "all": "*"}.items():
            limits = self.by_scope.get(scope, {})
            if value is None:
                continue
            shorter = value, value.partition("/")[2], value.rpartition("/")[2]
            own = next((name for name in shorter if name in limits), None)
            if own is not None or "*" in limits:
                names.append(f"{scope}:{own or value}")
        return names

    def find(self, bucket: str) -> Limit | None:
        """Return the limit of a bucket, if it has one."""
        scope, _, value = bucket.partition(":")
        limits = self.by_scope.get(scope, {})
        return limits.get(value) or limits.get("*")

    def limit(self, bucket: str) -> Limit:
        """Return the limit of a bucket."""
        return self.find(bucket) or Limit()

    def next_start(self, bucket: str, now: float) -> float:
        """Return when the rate of a bucket allows the next start."""
        limit = self.limit(bucket)
        starts = self.starts[bucket]
        if limit.rate is None or not starts:
            return now
        if limit.burst is None:
            in_window = [start for start in starts if start + limit.period > now]
            if len(in_window) < limit.rate:
                return now
            return in_window[-limit.rate] + limit.period
        seconds_each = Fraction(limit.period, limit.rate)
        full = Fraction(limit.burst)
        tokens = full
        at = starts[0]
        for start in starts:
            tokens = min(full, tokens + Fraction(start - at) / seconds_each) - 1
            at = start
        return max(now, at + float((1 - tokens) * seconds_each))

    def is_full(self, bucket: str, taken: int, now: float) -> bool:
        """Return whether a bucket allows no other start."""
        limit = self.limit(bucket)
        full = limit.running is not None and taken >= limit.running
        return full or self.next_start(bucket, now) > now
