"""Bounded buffer of the newest lines of a job: output of its runs, and activity of its agent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from draftsman.agent_runs.activity.activity import (
    ActivityKind,
    ActivityRow,
    activity_meaning,
    activity_text,
)
from draftsman.entities.cells import ROLES

LINES: Final = 5000
"""Maximum lines to keep."""
MAX_LINE_LENGTH: Final = 4000
"""Maximum characters of a line to keep."""


class Chunk(Protocol):
    """A chunk of a log."""

    @property
    def run(self) -> int:
        """Run ordinal."""

    @property
    def seq(self) -> int:
        """Position in the run's log."""

    @property
    def text(self) -> str:
        """Lines; the last may continue in the next chunk."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a run."""

    nth: int
    """Position among all lines read, independent of dropped lines."""
    run: int
    text: str
    truncated: int = 0
    """Characters that are left out at the end."""
    role: str = ""


@dataclass(frozen=True, slots=True)
class LogView:
    """Contents of the buffer. `earlier`: lines were dropped. `run`: only this run's lines."""

    lines: Sequence[LogLine] = ()
    earlier: bool = False
    run: int | None = None


class LogBuffer:
    """Splits chunks into lines, and keeps the newest."""

    def __init__(self, run: int | None = None) -> None:
        self.run = run
        self.cursor = (run or 0, -1 if run else 0)
        """(run, seq) of the last chunk."""
        self.activity_cursor = self.cursor
        """(run, seq) of the last row of activity."""
        self._lines: deque[LogLine] = deque(maxlen=LINES)
        self._count = 0
        self._earlier = False
        self._open = False
        self._in_message = False

    def add(self, entries: Sequence[Chunk | ActivityRow], *, gap: bool = False) -> None:
        """Append chunks and activity; with `gap`, drop previous lines and the first partial line.

        The first entry after a gap is a chunk.
        """
        for nth, entry in enumerate(entries):
            if isinstance(entry, ActivityRow):
                self._add_activity(entry)
                continue
            if self._in_message:
                self._open = self._in_message = False
            text = entry.text
            if gap and nth == 0:
                self._lines.clear()
                self._earlier = True
                self._open = False
                text = text.partition("\n")[2] or text
            self._add_text(entry.run, text)
            self.cursor = entry.run, entry.seq

    def view(self) -> LogView:
        """Return an immutable view."""
        return LogView(tuple(self._lines), self._earlier, self.run)

    def _add_activity(self, row: ActivityRow) -> None:
        text = activity_text(row)
        message = row.kind == ActivityKind.MESSAGE
        if not (message and row.continues and self._in_message):
            self._open = False
        self._in_message = message
        if message:
            self._add_text(row.run, text)
        else:
            meaning = activity_meaning(row)
            role = ROLES[meaning] if meaning else "head" if row.kind == ActivityKind.PLAN else ""
            for line in text.splitlines() if row.kind == ActivityKind.THOUGHT else [text]:
                self._append(row.run, line if role == "dim" else " ".join(line.split()), role)
        self.activity_cursor = row.run, row.seq

    def _add_text(self, run: int, text: str) -> None:
        if not text:
            return
        first, *new_lines = text.removesuffix("\n").split("\n")
        last = self._lines[-1] if self._lines and self._open else None
        if last is not None and last.run == run:
            self._lines[-1] = _line(last.nth, run, last.text + first, last.truncated)
        else:
            self._append(run, first)
        for line in new_lines:
            self._append(run, line)
        self._open = not text.endswith("\n")

    def _append(self, run: int, text: str, role: str = "") -> None:
        self._earlier = self._earlier or len(self._lines) == LINES
        self._lines.append(_line(self._count, run, text, role=role))
        self._count += 1


def _line(nth: int, run: int, text: str, truncated: int = 0, role: str = "") -> LogLine:
    text = text.removesuffix("\r")
    truncated += max(0, len(text) - MAX_LINE_LENGTH)
    return LogLine(nth, run, text[:MAX_LINE_LENGTH], truncated, role)
