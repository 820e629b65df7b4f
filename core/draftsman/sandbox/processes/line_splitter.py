"""Splitter of a stream into lines of limited length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

MAX_LINE: Final = 1024 * 1024
"""Maximum bytes of a line from an agent, without its newline."""


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that is not a valid message, with its `id`, if any."""

    reason: str
    id: str | None = None

    @classmethod
    def too_long(cls, size: int, limit: int) -> Self:
        """Return the line of so many bytes, which is longer than the limit."""
        return cls(f"line of {size:,} bytes is too long; the limit is {limit:,} bytes")


class LineSplitter:
    """Splits a stream into lines; buffers at most `limit` bytes."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | MalformedLine]:
        """Yield the lines that the chunk completes."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            yield self._take()
        self._add(rest)

    def end(self) -> Iterator[bytes | MalformedLine]:
        """Yield the last line if it has no newline."""
        if self._size:
            yield self._take()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(piece)

    def _take(self) -> bytes | MalformedLine:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > self._limit:
            return MalformedLine.too_long(size, self._limit)
        return line
