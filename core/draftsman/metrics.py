"""Metrics in the text format of Prometheus; the module that measures one declares it.

    Gauge          measured when it is read
    Totals         counts of this process by the labels of a `Counter`
    Distribution   durations in this process by the labels of a `Histogram`
    RecentMetrics  text of gauges that is read from the database every 15 seconds at most

`process_metrics` returns all totals and distributions of the process.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic
from typing import ClassVar, Final, TypeVar

NO_LABELS: Final[Mapping[str, str]] = {}
OTHER: Final = "other"
"""Value of the labels of what a metric with a limited number of values does not show by name."""
MAX_VALUES: Final = 200
"""Maximum combinations of labels that a process counts apart."""
BUCKETS: Final = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
READ_AGE: Final = 15.0
"""Seconds for which metrics of the database are kept, however often they are requested."""
T = TypeVar("T")
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its help; a constant of its module is in docs/metrics.md."""

    type: ClassVar[str]
    note: ClassVar[str] = ""
    """The end of the help of all metrics of this class."""
    name: str
    """Its name without the prefix `draftsman_`."""
    help: str
    labels: tuple[str, ...] = ()
    """Names of the labels that its samples may have."""

    @property
    def full_name(self) -> str:
        """Its name in Prometheus."""
        return f"draftsman_{self.name}"

    @property
    def head(self) -> str:
        """The lines before its samples."""
        name = self.full_name
        return f"# HELP {name} {self.help}{self.note}\n# TYPE {name} {self.type}\n"

    def render(self, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
        """Return its lines, none without a sample; a sample has labels and a value."""
        name = self.full_name
        lines = [f"{name}{_labels(labels)} {value:.10g}\n" for labels, value in samples]
        return "".join([self.head, *lines]) if lines else ""

    def render_value(self, value: float | None) -> str:
        """Return its lines for a value without labels, none without a value."""
        return self.render([] if value is None else [(NO_LABELS, value)])


class Gauge(Metric):
    """A metric that is measured when it is read."""

    __slots__ = ()
    type = "gauge"


class DatabaseGauge(Gauge):
    """A gauge that is read from the database: the same in each process, so never to be added up."""

    __slots__ = ()
    note = " Read from the database."


class Counter(Metric):
    """A metric that only rises while its process runs; its name ends in `_total`."""

    __slots__ = ()
    type = "counter"


@dataclass(frozen=True, slots=True)
class Histogram(Metric):
    """Durations of this process, counted by their length."""

    type = "histogram"
    buckets: tuple[float, ...] = BUCKETS
    """The longest durations of each bucket, in seconds."""


class Values(ABC):
    """Values of a metric of this process, by its labels.

    The first `MAX_VALUES` combinations of labels are kept apart, the rest is `other`.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        _of_process.append(self)

    @abstractmethod
    def render(self) -> str:
        """Return the values in the text format of Prometheus, none before the first."""

    def _find(self, values: dict[tuple[str, ...], T], labels: tuple[str, ...], new: T) -> T:
        """Return the value of these labels; keep a new one for labels without a value."""
        if len(values) >= MAX_VALUES and labels not in values:
            labels = (OTHER,) * len(labels)
        return values.setdefault(labels, new)

    def _named(self, labels: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self.metric.labels, labels, strict=True))


class Totals(Values):
    """Counts since the start of this process."""

    def __init__(self, counter: Counter) -> None:
        super().__init__(counter)
        self._counts: dict[tuple[str, ...], list[float]] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Count something with these values of the labels."""
        count = self._counts.get(labels) or self._find(self._counts, labels, [0.0])
        count[0] += amount

    def value(self, *labels: str) -> float:
        """Return the count of these values of the labels."""
        return self._counts.get(labels, [0.0])[0]

    def render(self) -> str:
        """Return the counts in the text format of Prometheus."""
        return self.metric.render(
            (self._named(labels), count[0]) for labels, count in sorted(self._counts.items())
        )


class Distribution(Values):
    """Durations since the start of this process."""

    def __init__(self, histogram: Histogram) -> None:
        super().__init__(histogram)
        self._bounds = histogram.buckets
        self._durations: dict[tuple[str, ...], list[float]] = {}
        """The number of durations by bucket, without those of shorter buckets, and their sum."""

    def add(self, *labels: str, seconds: float) -> None:
        """Count a duration with these values of the labels."""
        found = self._durations.get(labels)
        if found is None:
            found = self._find(self._durations, labels, [0.0] * (len(self._bounds) + 2))
        found[bisect_left(self._bounds, seconds)] += 1
        found[-1] += seconds

    def count(self, *labels: str) -> float:
        """Return the number of durations with these values of the labels."""
        return sum(self._durations.get(labels, [0.0])[:-1])

    def render(self) -> str:
        """Return the durations in the text format of Prometheus."""
        name = self.metric.full_name
        lines = [
            f"{name}{suffix}{_labels(labels)} {value:.10g}\n"
            for suffix, labels, value in self._all()
        ]
        return f"{self.metric.head}{''.join(lines)}" if lines else ""

    def _all(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for labels, (*counts, total) in sorted(self._durations.items()):
            named = self._named(labels)
            bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
            for bound, count in zip(bounds, accumulate(counts), strict=True):
                yield "_bucket", {**named, "le": bound}, count
            yield "_sum", named, total
            yield "_count", named, sum(counts)


class RecentMetrics:
    """Metrics of the database, kept for `READ_AGE` seconds; requests that meet share a read."""

    def __init__(self, read: Callable[[], Awaitable[str]]) -> None:
        """`read` returns them in the text format of Prometheus."""
        self._read = read
        self._lock = asyncio.Lock()
        self._text = ""
        self._read_at = -math.inf

    async def text(self) -> str:
        """Return them, at most `READ_AGE` seconds old."""
        async with self._lock:
            if monotonic() >= self._read_at + READ_AGE:
                self._text = await self._read()
                self._read_at = monotonic()
            return self._text


_of_process: list[Values] = []


def process_metrics() -> str:
    """Return what this process has counted, in the text format of Prometheus."""
    return "".join(values.render() for values in _of_process)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""
