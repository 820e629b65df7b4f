"""The newest lines of a job's log: so many, however long it is. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

LINES: Final = 5000
"""Lines that are kept."""
LONGEST: Final = 4000
"""Characters of a line that are kept."""


class Chunk(Protocol):
    """A piece of a log."""

    @property
    def run(self) -> int:
        """Its run."""

    @property
    def seq(self) -> int:
        """Its place."""

    @property
    def text(self) -> str:
        """Any number of lines; the last one may go on in the next piece."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a run; `more` is how many characters of it are left out."""

    nth: int
    """Its place among all that were read; it stays while lines before it go."""
    run: int
    text: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class LogView:
    """What is kept of a log. `earlier`: there are lines before these. `run`: only of this one."""

    lines: Sequence[LogLine] = ()
    earlier: bool = False
    run: int | None = None


class LogBuffer:
    """Takes pieces as they come, keeps the newest lines."""

    def __init__(self, run: int | None = None) -> None:
        self.run = run
        self.cursor = (run or 0, -1 if run else 0)
        """(run, seq) of the last piece."""
        self._lines: deque[LogLine] = deque(maxlen=LINES)
        self._count = 0
        self._earlier = False
        self._open = False

    def add(self, chunks: Sequence[Chunk], *, gap: bool = False) -> None:
        """Take what follows; after a `gap` what was before is let go, and half a line with it."""
        for nth, chunk in enumerate(chunks):
            text = chunk.text
            if gap and nth == 0:
                self._lines.clear()
                self._earlier, self._open = True, False
                text = text.partition("\n")[2] or text
            self._take(chunk.run, text)
            self.cursor = chunk.run, chunk.seq

    def seen(self) -> LogView:
        """Return what is kept now."""
        return LogView(tuple(self._lines), self._earlier, self.run)

    def _take(self, run: int, text: str) -> None:
        if not text:
            return
        first, *rest = text.removesuffix("\n").split("\n")
        last = self._lines[-1] if self._lines and self._open else None
        if last is not None and last.run == run:
            self._lines[-1] = _line(last.nth, run, last.text + first, last.more)
        else:
            self._append(run, first)
        for line in rest:
            self._append(run, line)
        self._open = not text.endswith("\n")

    def _append(self, run: int, text: str) -> None:
        self._earlier = self._earlier or len(self._lines) == LINES
        self._lines.append(_line(self._count, run, text))
        self._count += 1


def _line(nth: int, run: int, text: str, more: int = 0) -> LogLine:
    text = text.removesuffix("\r")
    return LogLine(nth, run, text[:LONGEST], more + max(0, len(text) - LONGEST))
