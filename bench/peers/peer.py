"""What a queue brings to be measured. Standard library only: this runs in any environment."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

QUEUE = "bench"
SEEDED = 1_000_000_000
"""Seeded rows with a number of their own have it from here on; what is measured stays below."""

Copies = list[tuple[str, dict[str, str]]]
"""Tables, and for each the columns in which the copy number `g` of its newest row differs."""


@dataclass(frozen=True, slots=True)
class About:
    """What the bench has to know of a queue without importing it."""

    distribution: str
    default: dict[str, Any]
    """Its settings when nobody tunes it, but for ten slots or what comes nearest."""
    fast: dict[str, Any]
    """What is set beyond them for throughput."""
    unfinished: str
    """A query: is any job left that was not seeded and has not ended?"""
    finished: Copies = field(default_factory=list)
    """How a finished job is copied; none: it keeps no such rows."""
    waiting: Copies = field(default_factory=list)
    """How a job that is far from due is copied; none: it cannot be copied in SQL."""
    share: tuple[float, float] = (1.0, 1.0)
    """Of the jobs of a drain, default and fast: what it can do in seconds, not minutes."""


class Peer(Protocol):
    """One queue: in a producer's process, or in a worker's."""

    ABOUT: ClassVar[About]

    def __init__(self, url: str, settings: dict[str, Any]) -> None: ...

    async def prepare(self) -> None:
        """Make its tables in an empty database."""

    async def open(self) -> None:
        """Open one connection to submit on."""

    async def submit(self, number: int) -> None:
        """Submit one job; it is durable when this returns."""

    async def submit_many(self, numbers: range) -> None:
        """Submit a batch, in the way it has for that."""

    async def work(self, probe: Probe) -> None:
        """Work until canceled; each job does nothing but `probe.hit(number)`."""


class Probe:
    """Counts starts; CPU and the clock begin with the first of them."""

    def __init__(self, target: int) -> None:
        """With the number of starts to tell of, or 0 to tell of each."""
        self.target = target
        self.count = 0
        self.cpu = 0.0

    def hit(self, number: int) -> None:
        """Note that a job started."""
        self.count += 1
        if self.target == 0:
            emit(event="start", number=number, at=time.monotonic_ns())
            return
        if self.count == 1:
            self.cpu = time.process_time()
            emit(event="first", at=time.monotonic_ns())
        if self.count == self.target:
            emit(event="counted")

    def end(self) -> None:
        """Tell what the process used since the first start, in seconds."""
        emit(event="end", cpu=time.process_time() - self.cpu)


def emit(**fields: Any) -> None:
    """Write one line to who started this process, at once."""
    os.write(1, (json.dumps(fields) + "\n").encode())
