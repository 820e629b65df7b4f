"""Bounded buffer of the newest lines of a job: output of its runs, and activity of its agent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from draftsman.agent_runs.activity.activity import ActivityKind, ActivityRow
from draftsman.agent_runs.activity.log_entries import OUTPUT, LogEntry, LogReader, entry_text
from draftsman.jobs.details.log_lines import entry_line, markdown_lines
from draftsman.jobs.details.sections.section import plain
from draftsman.jobs.runs.run import Run
from draftsman.jobs.runs.saved_data import LogChunk
from draftsman_tui.dashboard.jobs.details.row_layout import Row, row_of

LINES: Final = 5000
"""Maximum lines to keep."""
MAX_LINE_LENGTH: Final = 4000
"""Maximum characters of a line to keep."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a run."""

    nth: int
    """Position among all lines read, independent of dropped lines."""
    run: int
    text: str
    truncated: int = 0
    """Characters that are left out at the end."""
    kind: str = OUTPUT
    """Kind of its entry."""
    cells: Row = ()
    """Its text with roles; empty: it has none."""
    call: LogEntry | None = None
    """The call of a tool that it shows, while it runs."""


@dataclass(frozen=True, slots=True)
class LogView:
    """Contents of the buffer. `earlier`: lines were dropped. `run`: only this run's lines.

    `full`: long texts are not folded.
    """

    lines: Sequence[LogLine] = ()
    earlier: bool = False
    run: int | None = None
    full: bool = False


class LogBuffer:
    """Keeps the newest lines of the entries of a log."""

    def __init__(self, run: int | None = None) -> None:
        self.run = run
        self.full = False
        """Whether long texts are not folded."""
        self.cursor = (run or 0, -1 if run else 0)
        """(run, seq) of the last chunk."""
        self.activity_cursor = self.cursor
        """(run, seq) of the last row of activity."""
        self._reader = LogReader()
        self._reader.begin(run or 1)
        self._lines: deque[LogLine] = deque(maxlen=LINES)
        self._count = 0
        self._earlier = False
        self._kind = ""
        """Kind of the last entry."""
        self._open = False
        """Whether the last line of output goes on."""
        self._message = ""
        self._message_at = 0
        """The last message, and the position of its first line."""
        self._calls: dict[str, int] = {}
        """Positions of the lines of open calls, by id."""

    def add(self, records: Sequence[LogChunk | ActivityRow], *, gap: bool = False) -> None:
        """Append chunks and activity; with `gap`, drop previous lines and the first partial line.

        The first record after a gap is a chunk.
        """
        if gap:
            self._reader.begin(records[0].run)
        for nth, record in enumerate(records):
            if isinstance(record, ActivityRow):
                self.activity_cursor = record.run, record.seq
            else:
                self.cursor = record.run, record.seq
            for entry in self._reader.add(record):
                if gap and nth == 0 and entry.kind == OUTPUT:
                    self._lines.clear()
                    self._earlier = True
                    self._open = False
                    entry = replace(entry, text=entry.text.partition("\n")[2] or entry.text)
                self._add_entry(entry)

    def know(self, runs: Iterable[Run]) -> None:
        """Take the runs of the job, of which the ends are shown."""
        self._reader.know(runs)

    def end_runs(self, runs: int) -> None:
        """Add what the end of the first `runs` runs of the job changes."""
        for entry in self._reader.end_runs(runs if self.run is None else min(runs, self.run)):
            self._add_entry(entry)

    def view(self) -> LogView:
        """Return an immutable view."""
        return LogView(tuple(self._lines), self._earlier, self.run, self.full)

    def _add_entry(self, entry: LogEntry) -> None:
        kind = self._kind
        self._kind = entry.kind
        if entry.kind != OUTPUT:
            self._open = False
        match entry.kind:
            case _ if entry.kind == OUTPUT:
                self._add_text(entry.run, entry.text)
            case ActivityKind.MESSAGE:
                self._add_message(entry, is_new=not (entry.continues and kind == entry.kind))
            case ActivityKind.THOUGHT:
                for text in entry.text.splitlines():
                    self._append(entry.run, text, entry.kind, row_of(entry_line(entry, text)))
            case ActivityKind.TOOL:
                self._add_call(entry)
            case _:
                text = entry_text(entry)
                self._append(entry.run, text, entry.kind, row_of(entry_line(entry, text)))

    def _add_message(self, entry: LogEntry, *, is_new: bool) -> None:
        """Add a piece of a message, whose lines are made again from all of it."""
        if is_new:
            self._message = ""
            self._message_at = self._count
        self._message += entry.text
        while self._lines and self._lines[-1].nth >= self._message_at:
            self._lines.pop()
            self._count -= 1
        for line in markdown_lines(self._message):
            self._append(entry.run, plain(line), entry.kind, row_of(line))

    def _add_call(self, entry: LogEntry) -> None:
        """Add a call, or replace its line."""
        text = entry_text(entry)
        cells = row_of(entry_line(entry, text))
        call = entry if entry.is_open else None
        nth = self._calls.pop(entry.id, self._count)
        first = self._lines[0].nth if self._lines else nth
        if nth == self._count:
            self._append(entry.run, text, entry.kind, cells, call)
        elif nth >= first:
            self._lines[nth - first] = _line(
                nth, entry.run, text, kind=entry.kind, cells=cells, call=entry
            )
        if call is not None:
            self._calls[entry.id] = nth

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

    def _append(
        self,
        run: int,
        text: str,
        kind: str = OUTPUT,
        cells: Row = (),
        call: LogEntry | None = None,
    ) -> None:
        self._earlier = self._earlier or len(self._lines) == LINES
        self._lines.append(_line(self._count, run, text, kind=kind, cells=cells, call=call))
        self._count += 1


def _line(
    nth: int,
    run: int,
    text: str,
    truncated: int = 0,
    kind: str = OUTPUT,
    cells: Row = (),
    call: LogEntry | None = None,
) -> LogLine:
    text = text.removesuffix("\r")
    truncated += max(0, len(text) - MAX_LINE_LENGTH)
    return LogLine(nth, run, text[:MAX_LINE_LENGTH], truncated, kind, cells, call)
