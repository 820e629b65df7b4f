"""Entries of the log of a job: output, and what an agent says and does, as people read it. Pure.

A call of a tool is a single entry that changes until the call ends, and the usage of a run is an
entry at its end, while the database has a row for each of their states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from draftsman.agent_runs.activity.activity import (
    TEXT_KINDS,
    ActivityKind,
    ActivityRow,
    ActivityState,
    activity_text,
    call_text,
)
from draftsman.formats import times
from draftsman.ids import run_text
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.jobs.runs.saved_data import LogChunk
from draftsman.jobs.status_display import Meaning
from draftsman.text import first_line

OUTPUT: Final = "output"
"""Kind of an entry that programs and handlers print."""
END: Final = "end"
"""Kind of the entry at the end of a run that did not end well: its status, and why."""
NOT_FINISHED: Final = "not_finished"
"""State of a call whose run ended before it."""
NOT_DECIDED: Final = "not_decided"
"""State of a call that waited for a decision when its run ended."""
OPEN: Final = frozenset({ActivityState.PENDING, ActivityState.RUNNING})
MAX_ERROR: Final = 300
"""Characters of the error of a run at its end; the run itself has all of it."""
_ENDED: Final = {RunStatus.CANCELED: "was canceled", RunStatus.INTERRUPTED: "was interrupted"}
_SHOWN_FROM: Final = 1.0
"""Seconds of a call that are shown: rows are stored each half second."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry; one with the `id` of an earlier entry replaces it.

    `text` is output, a piece of a message, the title of a call, or a path. `state` is that of a
    call or a file. `started_at` and `ended_at` are times of a call, as far as they are known.
    """

    run: int
    seq: int
    """Position of its first record among the output or the activity of its run."""
    kind: str
    text: str
    created_at: datetime
    state: str | None = None
    tool: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False
    """Whether the text goes on with that of the entry before it."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def id(self) -> str:
        """Its name within the log."""
        stream = self.kind if self.kind in (OUTPUT, END) else "activity"
        return f"{stream}-{self.run}-{self.seq}"

    @property
    def is_call(self) -> bool:
        """Whether it is a call of a tool."""
        return self.kind == ActivityKind.TOOL

    @property
    def is_open(self) -> bool:
        """Whether it is a call that has not ended."""
        return self.is_call and self.state in OPEN

    def seconds(self, now: datetime | None = None) -> float | None:
        """Return how long the call took, or runs by `now`; None if that is not known."""
        end = self.ended_at or (now if self.state == ActivityState.RUNNING else None)
        if self.started_at is None or end is None:
            return None
        return max(0.0, (end - self.started_at).total_seconds())

    def as_json(self) -> dict[str, Any]:
        """Return its fields, without those that it does not have."""
        fields = {
            "run": self.run,
            "seq": self.seq,
            "kind": self.kind,
            "text": self.text,
            "created_at": self.created_at,
        }
        more = {
            "state": self.state,
            "tool": self.tool,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "seconds": self.seconds(),
        }
        fields |= {name: value for name, value in more.items() if value is not None}
        return fields | ({"detail": self.detail} if self.detail else {})


def join_message(before: LogEntry | None, piece: LogEntry) -> LogEntry:
    """Return the message that a piece goes on with, or begins, with all its text."""
    if before is None or not piece.continues:
        return piece
    return replace(before, text=before.text + piece.text)


def run_end(run: Run) -> LogEntry | None:
    """Return the entry at the end of a run that failed, was canceled or lost; else None."""
    is_bad = run.status in (RunStatus.FAILED, RunStatus.CANCELED) or run.error is not None
    if run.finished_at is None or not is_bad:
        return None
    error = first_line(run.error or "", MAX_ERROR)
    text = f"{run_text(run.ordinal)} {_ENDED.get(run.status, run.status)}"
    text = f"{text}: {error}" if error else text
    return LogEntry(run.ordinal, 0, END, text, run.finished_at, state=run.status)


def last_lines(entries: Sequence[LogEntry], count: int) -> list[LogEntry]:
    """Return the entries of the last lines, the first without its earlier lines.

    The ends of their runs are no lines of them, and are kept.
    """
    if not count:
        return []
    kept: list[LogEntry] = []
    left = count
    following: LogEntry | None = None
    for entry in reversed(entries):
        if entry.kind == END and left:
            kept.append(entry)
            continue
        if entry.kind != OUTPUT and entry.kind not in TEXT_KINDS:
            lines = [entry.text]
        else:
            lines = entry.text.splitlines(keepends=True)
        joined = _continues(following, entry) and lines[-1:] != [] and lines[-1][-1:] != "\n"
        size = len(lines) - joined
        if size > left:
            text = "".join(lines[len(lines) - left - joined :])
            if text:
                kept.append(replace(entry, text=text))
            break
        kept.append(entry)
        left -= size
        following = entry
    return kept[::-1]


def _continues(following: LogEntry | None, entry: LogEntry) -> bool:
    """Return whether a text goes on with the text of an entry."""
    if following is None or (following.run, following.kind) != (entry.run, entry.kind):
        return False
    return following.continues or entry.kind == OUTPUT


class LogReader:
    """Reads the records of a log, output and activity in order of time, as entries."""

    def __init__(self) -> None:
        self.run = 0
        self.ended = 0
        """The runs up to this one have ended, and their ends are among the entries."""
        self._ends: dict[int, LogEntry] = {}
        self._calls: dict[str, LogEntry] = {}
        """The open calls of the run, by key."""
        self._usage: LogEntry | None = None
        self.message: LogEntry | None = None
        """The last message, with all its pieces so far."""

    @property
    def open_calls(self) -> Sequence[LogEntry]:
        """The calls of the run that have not ended."""
        return tuple(self._calls.values())

    def add(self, record: LogChunk | ActivityRow) -> list[LogEntry]:
        """Return the entries that a record adds or changes."""
        ended = [] if record.run == self.run else self.end_runs(record.run - 1)
        self.run = record.run
        if not isinstance(record, ActivityRow):
            return [
                *ended,
                LogEntry(record.run, record.seq, OUTPUT, record.text, record.created_at),
            ]
        entry = LogEntry(
            run=record.run,
            seq=record.seq,
            kind=record.kind,
            text=record.text,
            created_at=record.created_at,
            state=record.state,
            detail=record.detail,
            continues=record.continues,
        )
        if record.kind == ActivityKind.MESSAGE:
            self.message = join_message(self.message, entry)
        if record.kind == ActivityKind.USAGE:
            self._usage = entry
            return ended
        return [*ended, self._call(entry, record) if entry.is_call else entry]

    def begin(self, run: int) -> None:
        """Begin with a run: how earlier runs ended is not told."""
        self.ended = max(self.ended, run - 1)

    def know(self, runs: Iterable[Run]) -> None:
        """Set the runs of the job, whose ends are part of the log."""
        self._ends = {end.run: end for run in runs if (end := run_end(run)) is not None}

    def end_runs(self, count: int) -> list[LogEntry]:
        """Return the entries that the ends of the first `count` runs of the job add or change."""
        changed = self._end_run() if self.run <= count else []
        ends = [self._ends[run] for run in range(self.ended + 1, count + 1) if run in self._ends]
        self.ended = max(self.ended, count)
        return [*changed, *ends]

    def _end_run(self) -> list[LogEntry]:
        calls = [
            replace(
                call,
                state=NOT_DECIDED if call.state == ActivityState.PENDING else NOT_FINISHED,
            )
            for call in self._calls.values()
        ]
        usage = [] if self._usage is None else [self._usage]
        self._calls.clear()
        self._usage = None
        return [*calls, *usage]

    def _call(self, entry: LogEntry, row: ActivityRow) -> LogEntry:
        """Return the entry of a call, which is new after the end of another with its key."""
        key = row.key or row.text
        before = self._calls.pop(key, entry)
        is_start = row.state == ActivityState.RUNNING and before.state != ActivityState.RUNNING
        is_first = before is entry and row.state == ActivityState.RUNNING
        call = replace(
            before,
            text=row.text or before.text,
            state=row.state,
            tool=row.detail.get("tool") or before.tool,
            detail={},
            started_at=row.created_at if is_start or is_first else before.started_at,
            ended_at=None if row.state in OPEN else row.created_at,
        )
        if call.is_open:
            self._calls[key] = call
        return call


def entry_meaning(entry: LogEntry) -> Meaning | None:
    """Return what the state or else the kind of an entry means; None: nothing special."""
    if entry.kind == END:
        return MEANINGS[RunStatus(entry.state or RunStatus.FAILED)]
    if entry.is_call:
        return _CALL_MEANINGS.get(entry.state or "", Meaning.NEUTRAL)
    return Meaning.NEUTRAL if entry.kind in _SECONDARY else None


def entry_text(entry: LogEntry, now: datetime | None = None) -> str:
    """Return an entry as text: `✓ execute: npm test (42 s)`, `[plan] 3 of 7 steps: write tests`.

    All but output, messages and thoughts are a single line. `now`: how long an open call runs.
    """
    if entry.kind == OUTPUT or entry.kind in TEXT_KINDS:
        return entry.text
    if entry.kind == END:
        return f"-- {entry.text} --"
    if not entry.is_call:
        return " ".join(activity_text(entry).split())
    text = " ".join(call_text(entry.state, entry.tool, entry.text).split())
    seconds = entry.seconds(now)
    length = "" if seconds is None or seconds < _SHOWN_FROM else times.span(seconds)
    match entry.state:
        case ActivityState.RUNNING:
            return f"{text} … running {length}".rstrip()
        case ActivityState.PENDING:
            return f"{text} … waits for a decision"
        case str(state) if state in _ENDS:
            return f"{text} ({_ENDS[state]})"
        case _:
            return f"{text} ({length})" if length else text


_CALL_MEANINGS: Final[Mapping[str, Meaning]] = {
    ActivityState.PENDING: Meaning.WAITING,
    ActivityState.RUNNING: Meaning.ACTIVE,
    ActivityState.COMPLETED: Meaning.SUCCESS,
    ActivityState.FAILED: Meaning.FAILURE,
    NOT_FINISHED: Meaning.WARNING,
    NOT_DECIDED: Meaning.NEUTRAL,
}
_ENDS: Final = {NOT_FINISHED: "not finished", NOT_DECIDED: "waited for a decision"}
"""What the text of a call says that did not end."""
_SECONDARY: Final = (ActivityKind.THOUGHT, ActivityKind.USAGE, ActivityKind.NOTE)
