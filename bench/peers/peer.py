"""Interface of a measured queue. Uses only the standard library, so it runs in any environment."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

QUEUE = "bench"
SEEDED = 1_000_000_000
"""First number of seeded rows that have numbers of their own; measured jobs are below it."""

Copies = list[tuple[str, dict[str, str]]]
"""Tables, with expressions of the columns in which copy number `g` of the newest row differs."""


@dataclass(frozen=True, slots=True)
class About:
    """Description of a queue that the bench reads without importing the queue."""

    distribution: str
    default: dict[str, Any]
    """Default settings, except ten slots or the nearest possible number."""
    fast: dict[str, Any]
    """Additional settings for throughput."""
    unfinished: str
    """A query that returns whether an unseeded job is unfinished."""
    finished: Copies = field(default_factory=list)
    """Copies of a finished job; empty: it keeps no such rows."""
    waiting: Copies = field(default_factory=list)
    """Copies of a job that is due much later; empty: it cannot be copied in SQL."""
    functions: tuple[str, ...] = ()
    """Where it runs a function, if that is compared: in the `loop`, a `thread`, a `process`."""
    keeps_nothing: bool = False
    """Whether it has no rows, so that only its runs of functions are compared."""
    share: tuple[float, float] = (1.0, 1.0)
    """Share of the jobs of a drain with default and fast settings, to limit the time."""


class Peer(Protocol):
    """A queue, in the process of a producer or of a worker."""

    ABOUT: ClassVar[About]

    def __init__(self, url: str, settings: dict[str, Any]) -> None: ...

    async def prepare(self) -> None:
        """Create its tables in an empty database."""

    async def open(self) -> None:
        """Open a connection for submissions."""

    async def submit(self, number: int) -> None:
        """Submit a job; it is durable when this returns."""

    async def submit_many(self, numbers: range) -> None:
        """Submit a batch with the queue's own function for batches."""

    async def work(self, probe: Probe) -> None:
        """Work until canceled; each job only calls `probe.hit(number)`."""


class Probe:
    """Counter of starts; CPU and time are measured from the first start."""

    def __init__(self, target: int) -> None:
        """Create a probe that reports after `target` starts, or each start if it is 0."""
        self.target = target
        self._counter = itertools.count(1)  # threads never get the same number
        self.count = 0
        self.cpu = 0.0
        self.first: int | None = None
        """Time of the first start, in nanoseconds of the monotonic clock."""
        self.marks = {target * part // 10 for part in range(1, 11)}
        self.tenths = list[int]()
        """Times at which each tenth of the starts was over."""
        self.counters: Callable[[], dict[str, int]] = dict
        """Reads further counters of the worker at its end."""

    def hit(self, number: int) -> None:
        """Count the start of a job, in any thread."""
        self.count = next(self._counter)
        if self.target == 0:
            emit(event="start", number=number, at=time.monotonic_ns())
            return
        if self.count == 1:
            self.cpu = time.process_time()
            self.first = time.monotonic_ns()
            emit(event="first", at=self.first)
        if self.count in self.marks:
            self.tenths.append(time.monotonic_ns())
        if self.count == self.target:
            emit(event="counted")

    def end(self) -> None:
        """Report the CPU seconds of the process since the first start, and its counters."""
        cpu = time.process_time() - self.cpu
        emit(event="end", cpu=cpu, first=self.first, tenths=self.tenths, **self.counters())


def emit(**fields: Any) -> None:
    """Write an event to the parent process, without a buffer."""
    os.write(1, (json.dumps(fields) + "\n").encode())
