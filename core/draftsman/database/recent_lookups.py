"""Values that a process reads once in a while, however many callers look them up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class RecentLookups(Generic[T]):
    """Values by name, each of which is kept for some seconds after it was read.

    Callers that look up a name at the same time share a read, and its error.
    """

    def __init__(
        self, read: Callable[[Sequence[str]], Awaitable[Mapping[str, T]]], *, age: float
    ) -> None:
        """`read` returns the values of those names that have one; `age` is in seconds."""
        self._read = read
        self._age = age
        self._reads: dict[str, asyncio.Task[Mapping[str, T]]] = {}
        """The read of each name."""
        self._until = 0.0

    async def of(self, names: Collection[str]) -> dict[str, T]:
        """Return the values of those names that have one."""
        now = time.monotonic()
        if now > self._until:
            self._reads = {}
            self._until = now + self._age
        reads = self._reads  # another call may replace it meanwhile
        if missing := [name for name in dict.fromkeys(names) if name not in reads]:
            self._start(missing)
        values = {}
        for name in names:
            read = reads[name]
            found = read.result() if read.done() else await asyncio.shield(read)
            if name in found:
                values[name] = found[name]
        return values

    def _start(self, names: Sequence[str]) -> None:
        """Read these names; after an error they are read again."""
        reads = self._reads

        def forget_failure(read: asyncio.Task[Mapping[str, T]]) -> None:
            if read.cancelled() or read.exception() is not None:
                for name in names:
                    del reads[name]

        read = asyncio.ensure_future(self._read_now(names))
        read.add_done_callback(forget_failure)
        reads.update(dict.fromkeys(names, read))

    async def _read_now(self, names: Sequence[str]) -> Mapping[str, T]:
        return await self._read(names)
