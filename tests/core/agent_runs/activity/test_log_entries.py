"""Entries of a log: a call is one that changes, the usage is at the end, and each is a text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.agent_runs.activity.log_entries import (
    LogEntry,
    LogReader,
    entry_meaning,
    entry_text,
    last_lines,
)
from draftsman.jobs.runs.run import Run, RunStatus
from draftsman.jobs.runs.saved_data import LogChunk
from draftsman.jobs.status_display import Meaning
from tests.support.cases import cases

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def row(seq: int, kind: str, text: str = "", seconds: float = 0, **fields: Any) -> ActivityRow:
    values = {"run": 1, "state": None, "key": None, "detail": {}, "continues": False} | fields
    return ActivityRow(seq=seq, kind=kind, text=text, created_at=at(seconds), **values)


def call(seq: int, state: str | None, seconds: float = 0, **fields: Any) -> ActivityRow:
    detail = {"tool": "execute"}
    values = {"key": "1", "detail": detail, "text": "npm\ntest"} | fields
    return row(seq, "tool", seconds=seconds, state=state, **values)


def texts(reader: LogReader, *records: LogChunk | ActivityRow, now: float = 0) -> list[str]:
    """Return the text of each entry by its id, as it is in the end."""
    entries: dict[str, LogEntry] = {}
    for record in records:
        entries |= {entry.id: entry for entry in reader.add(record)}
    return [entry_text(entry, at(now)) for entry in entries.values()]


NAME = "execute: npm test"


@cases(
    ("rows", "expected"),
    [
        ([call(1, "running")], [f"▸ {NAME} … running 12 s"]),
        ([call(1, "running"), call(2, "completed", 42)], [f"✓ {NAME} (42 s)"]),
        ([call(1, "running"), call(2, "failed", 300)], [f"✗ {NAME} (5 min)"]),
        ([call(1, "running"), call(2, "completed", 0.5)], [f"✓ {NAME}"]),
        ([call(1, "completed")], [f"✓ {NAME}"]),
        ([call(1, "pending")], [f"? {NAME} … waits for a decision"]),
        ([call(1, None)], [f"· {NAME}"]),
        ([call(1, "running"), call(2, "pending", 1), call(3, "running", 60),
          call(4, "completed", 63)], [f"✓ {NAME} (3 s)"]),
        ([call(1, "running"), call(2, "completed", 2, text="npm ci", detail={})],
         ["✓ execute: npm ci (2 s)"]),
        ([call(1, "completed"), call(2, "running", 5), call(3, "failed", 9)],
         [f"✓ {NAME}", f"✗ {NAME} (4 s)"]),
        ([call(1, "running", key=None), row(2, "file", "a.py", state="created"),
          call(3, "completed", 3, key=None)], [f"✓ {NAME} (3 s)", "[created] a.py"]),
        ([call(1, "running"), call(1, "running", run=2)],
         [f"· {NAME} (not finished)", f"▸ {NAME} … running 12 s"]),
        ([call(1, "pending"), LogChunk(2, 0, "again\n", START)],
         [f"· {NAME} (waited for a decision)", "again\n"]),
    ],
)  # fmt: skip
def test_a_call_is_one_entry_until_it_has_ended(
    rows: list[LogChunk | ActivityRow], expected: list[str]
) -> None:
    assert texts(LogReader(), *rows, now=12) == expected


def test_usage_is_once_at_the_end_of_its_run() -> None:
    reader = LogReader()
    usages = [row(n, "usage", key="usage", detail={"input_tokens": n * 1000}) for n in (1, 2)]
    assert texts(reader, *usages, row(3, "message", "Done")) == ["Done"]
    again = texts(reader, row(1, "message", "Again", run=2))
    assert again == ["[usage] 2,000 tokens in", "Again"]
    assert reader.end_runs(2) == []


def test_an_entry_has_its_meaning_and_its_fields() -> None:
    reader = LogReader()
    reader.add(call(1, "running"))
    (entry,) = reader.add(call(2, "completed", 42))
    assert entry.as_json() == {
        "run": 1,
        "seq": 1,
        "kind": "tool",
        "text": "npm\ntest",
        "created_at": START,
        "state": "completed",
        "tool": "execute",
        "started_at": START,
        "ended_at": at(42),
        "seconds": 42.0,
    }
    assert entry_meaning(entry) is Meaning.SUCCESS
    (plan,) = reader.add(row(3, "plan", detail={"entries": []}))
    assert plan.as_json()["detail"] == {"entries": []}
    (output,) = reader.add(LogChunk(1, 3, "x", START))
    assert (entry_meaning(output), output.id == plan.id) == (None, False)


def ended(ordinal: int, status: RunStatus, error: str | None = None) -> Run:
    """Return a run that has ended."""
    fields: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__)
    fields |= {"job": 1, "ordinal": ordinal, "status": status, "error": error}
    return Run(**(fields | {"finished_at": at(9)}))


def test_a_run_that_did_not_end_well_has_its_end_once() -> None:
    reader = LogReader()
    reader.know(
        [
            ended(1, RunStatus.INTERRUPTED, "the worker was lost"),
            ended(2, RunStatus.PARKED),
            ended(3, RunStatus.FAILED, "no such file\nor folder"),
            ended(4, RunStatus.INTERRUPTED),
            ended(5, RunStatus.CANCELED),
        ]
    )
    first = reader.add(LogChunk(1, 0, "x\n", START))
    second = reader.add(LogChunk(2, 0, "y\n", START))
    assert [entry_text(entry) for entry in (*first, *second)] == [
        *("x\n", "-- run 1 was interrupted: the worker was lost --", "y\n")
    ]
    rest = reader.end_runs(5)
    assert [entry_text(entry) for entry in rest] == [
        *("-- run 3 failed: no such file --", "-- run 5 was canceled --")
    ]
    assert [entry_meaning(entry) for entry in rest] == [Meaning.FAILURE, Meaning.NEUTRAL]
    assert reader.end_runs(5) == []
    assert last_lines([*first, *second, *rest], 1) == [*second[1:], *rest]
    assert last_lines([*first, *second, *rest], 0) == []


def test_a_log_that_begins_with_a_run_does_not_tell_how_earlier_runs_ended() -> None:
    reader = LogReader()
    reader.begin(2)
    reader.know([ended(1, RunStatus.FAILED), ended(2, RunStatus.FAILED)])
    assert [entry.run for entry in reader.end_runs(2)] == [2]
