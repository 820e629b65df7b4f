"""Rendering of a job: rows that fit any text, and the end of a log."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.entities.cells import Cell
from draftsman.jobs.details.sections.section import LineSpan, faint
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import RunStatus
from draftsman.jobs.runs.saved_data import Artifact, LogChunk
from draftsman.jobs.status_display import Meaning
from draftsman_tui.dashboard.jobs.details import log_buffer
from draftsman_tui.dashboard.jobs.details.header import WHAT_NEXT, head
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.log_buffer import LogBuffer, LogLine, LogView
from draftsman_tui.dashboard.jobs.details.log_tab import log
from draftsman_tui.dashboard.jobs.details.row_layout import (
    MAX_CHARACTERS_PER_CELL,
    Item,
    Row,
    contains_text,
    lines,
    row_of,
    text_row,
    wrap_row,
)
from tests.tui.dashboard.fixtures_data import NOW, job_snapshot, run

HOSTILE = st.text(
    st.sampled_from("ab \t\n\r\x1b\x07\x9b\u202e\u2066\u0301\u200d字🙂[bold]")
) | st.text(max_size=60)


def chunk(run: int, seq: int, text: str) -> LogChunk:
    return LogChunk(run, seq, text, NOW)


def text(row: Row) -> str:
    return "".join(cell.text for cell in row)


def what_next(**fields: Any) -> str:
    """Return the row of the header about what a job with these fields did or waits for."""
    snapshot = job_snapshot()
    job = replace(snapshot.job, **fields)
    details = replace(snapshot.details, job=job, questions=[])
    return text(head(replace(snapshot, details=details), NOW)[WHAT_NEXT])


def test_the_header_has_a_short_result_and_no_code_of_an_error() -> None:
    completed: dict[str, Any] = {"status": Status.COMPLETED}
    assert what_next(**completed, result={"rows": 12}) == "result  rows 12"
    long = what_next(**completed, result={f"row{n}": n for n in range(9)})
    assert long == "result  row0 0 · row1 1 · row2 2 (all of it in the tab artifacts)"
    error = {"last_error": "no such host", "error_class": "TRANSIENT_INFRA"}
    dead = what_next(status=Status.DEAD_LETTER, **error)
    spent = "all 3 retries are used"
    assert dead == f"error  no such host; will not be retried: {spent}"
    failed = what_next(status=Status.FAILED, last_error="no such host", error_class="PERMANENT")
    final = "another run would fail in the same way"
    assert failed == f"error  no such host; will not be retried: {final}"


@given(HOSTILE, st.integers(1, 40), st.integers(0, 10))
def test_any_text_fits_without_control_characters(hostile: str, width: int, hang: int) -> None:
    for row in lines(hostile, width, " " * hang):
        drawn = text(row)
        assert drawn.isprintable() or not any(ord(char) < 32 for char in drawn)
        assert not set(drawn) & set("\x1b\x9b\r\n\t\u202e\u2066")
        signed = row[-1].text.startswith("…")
        assert signed or cell_len(drawn) <= max(width, hang + 2)
        assert len(drawn) <= MAX_CHARACTERS_PER_CELL * (width + hang) + 60


@given(st.text(st.sampled_from("ab 字"), min_size=1, max_size=100), st.integers(2, 30))
def test_wrapping_drops_only_the_blanks_at_breaks(hostile: str, width: int) -> None:
    rows = wrap_row((Cell(hostile),), width, most=1000)
    assert "".join(map(text, rows)).replace(" ", "") == hostile.replace(" ", "")


def test_long_text_is_truncated_with_the_number_of_omitted_characters() -> None:
    rows = wrap_row(text_row("x" * 1_000_000), 80, most=3)
    assert len(rows) == 3
    assert text(rows[-1]) == "… 999,760 more characters"


def test_meanings_become_roles_and_equal_cells_are_joined() -> None:
    line = (faint("12:00"), " is ", LineSpan("failed", Meaning.FAILURE), "", " [bo", "ld]\x1b")
    expected = (Cell("12:00", "dim"), Cell(" is "), Cell("failed", "bad"), Cell(" [bold]\\u{1b}"))
    assert row_of(line) == expected


def test_search_matches_any_row_of_an_item() -> None:
    item = Item("x", (text_row("one"), text_row("Two three")))
    assert contains_text(item, "tWO TH")
    assert not contains_text(item, "one two")


def test_log_lines_in_pieces_are_joined() -> None:
    book = LogBuffer()
    book.add([chunk(1, 0, "one\ntw"), chunk(1, 1, "o\r\n\nfour"), chunk(2, 0, "five\n")])
    seen = book.view()
    assert [(line.run, line.text) for line in seen.lines] == [
        (1, "one"), (1, "two"), (1, ""), (1, "four"), (2, "five"),
    ]  # fmt: skip
    assert (book.cursor, seen.earlier) == ((2, 0), False)
    book.add([chunk(2, 1, "six")])
    assert [line.text for line in book.view().lines[-2:]] == ["five", "six"]


def test_log_keeps_the_newest_lines_with_their_numbers() -> None:
    book = LogBuffer()
    book.add([chunk(1, 0, "".join(f"{n}\n" for n in range(log_buffer.LINES + 10)))])
    seen = book.view()
    assert len(seen.lines) == log_buffer.LINES
    assert (seen.lines[0].text, seen.lines[0].nth, seen.earlier) == ("10", 10, True)


def test_log_line_without_an_end_is_truncated() -> None:
    book = LogBuffer()
    for seq in range(100):
        book.add([chunk(1, seq, "x" * 64_000)])
    (line,) = book.view().lines
    assert (len(line.text), line.truncated) == (
        log_buffer.MAX_LINE_LENGTH,
        6_400_000 - log_buffer.MAX_LINE_LENGTH,
    )


def test_log_gap_drops_earlier_lines_and_a_partial_line() -> None:
    book = LogBuffer()
    book.add([chunk(1, 0, "old")])
    book.add([chunk(1, 900, "half\nwhole\n")], gap=True)
    seen = book.view()
    assert ([line.text for line in seen.lines], seen.earlier) == (["whole"], True)


def row(run: int, seq: int, kind: str, text: str = "", **fields: Any) -> ActivityRow:
    values = {"state": None, "key": None, "detail": {}, "continues": False} | fields
    return ActivityRow(run, seq, kind, text=text, created_at=NOW, **values)


def lines_of(book: LogBuffer) -> list[tuple[str, str]]:
    """Return the text of each line, and the roles of its cells."""
    lines = book.view().lines
    return [(line.text, " ".join(cell.role for cell in line.cells)) for line in lines]


def test_activity_has_lines_of_its_own_between_the_output() -> None:
    book = LogBuffer()
    failed = row(1, 3, "tool", "npm\ntest", state="failed", detail={"tool": "execute"})
    book.add(
        [
            chunk(1, 0, "no newline"),
            row(1, 1, "message", "# Fix"),
            row(1, 2, "message", "ing\n**it** now", continues=True),
            chunk(1, 1, "output\n"),
            failed,
            row(1, 4, "thought", "one\ntwo"),
            row(1, 5, "message", "Done", continues=True),
        ]
    )
    assert lines_of(book) == [
        ("no newline", ""),
        ("Fixing", "head"),
        ("", ""),
        ("it now", "head "),
        ("output", ""),
        ("✗ execute: npm test", "bad"),
        ("one", "dim"),
        ("two", "dim"),
        ("Done", ""),
    ]
    assert (book.cursor, book.activity_cursor) == ((1, 1), (1, 5))


def test_a_call_keeps_its_line_and_the_usage_comes_at_the_end() -> None:
    book = LogBuffer()
    start = row(1, 1, "tool", "npm test", state="running", key="1")
    usage = row(1, 3, "usage", detail={"input_tokens": 9}, key="usage")
    book.add([start, chunk(1, 0, "output\n"), usage])
    assert lines_of(book) == [("▸ npm test … running", "busy"), ("output", "")]
    running = log(replace(job_snapshot(), log=book.view()), 80, NOW + timedelta(seconds=12))
    assert text(running[1].rows[0]) == "▸ npm test … running 12 s"
    book.end_runs(0)
    assert len(book.view().lines) == 2
    later = replace(row(1, 4, "tool", "npm test", state="completed", key="1"),
                    created_at=NOW + timedelta(seconds=42))  # fmt: skip
    book.add([later])
    book.end_runs(1)
    assert lines_of(book) == [
        ("✓ npm test (42 s)", "good"),
        ("output", ""),
        ("[usage] 9 tokens in", "dim"),
    ]
    done = log(replace(job_snapshot(), log=book.view()), 80, NOW)
    assert text(done[1].rows[0]) == "✓ npm test (42 s)"


def test_long_output_of_a_run_with_an_agent_is_folded() -> None:
    book = LogBuffer()
    book.add([chunk(1, 0, "".join(f"line {n}\n" for n in range(60)))])
    alone = log(replace(job_snapshot(), log=book.view()), 80, NOW)
    assert len(alone) == 61
    book.add([row(1, 1, "message", "Done")])
    shown = log(replace(job_snapshot(), log=book.view()), 80, NOW)
    texts = [text(item.rows[0]) for item in shown]
    assert texts[10:13] == ["line 9", "… 40 more lines; enter shows them", "line 50"]
    book.full = True
    assert len(log(replace(job_snapshot(), log=book.view()), 80, NOW)) == 62


def test_run_without_a_log_has_its_heading() -> None:
    runs = [run(142, nth, RunStatus.PARKED) for nth in (1, 2, 3)]
    view = LogView([LogLine(0, 2, "here")])
    drawn = log(replace(job_snapshot(runs=runs), log=view), 80, NOW)
    heads = [text(item.rows[0]) for item in drawn]
    assert heads[0] == "── run 1, parked: no output ──"
    assert "run 2, parked, started" in heads[1]
    assert heads[3] == "── run 3, parked: no output ──"
    single = log(replace(job_snapshot(runs=runs), log=replace(view, run=2)), 80, NOW)
    assert [text(item.rows[0]) for item in single] == heads[1:3]
    late = log(replace(job_snapshot(runs=runs), log=replace(view, earlier=True)), 80, NOW)
    assert [text(item.rows[0]) for item in late][1:] == heads[1:]


def test_header_shows_the_end_and_the_runs_before_the_branch() -> None:
    branch = {"branch": "draftsman/D-142-" + "long" * 20, "commit": "0" * 40}
    job = replace(
        job_snapshot().job, status=Status.FAILED, finished_at=NOW, run_count=1, result=branch
    )
    line = text(head(job_snapshot(job=job), NOW)[1])
    assert line.index("finished ") < line.index("runs 1") < line.index("draftsman/D-142")
    assert "attempts" not in line
    tried = text(head(job_snapshot(job=replace(job, attempts=2)), NOW)[1])
    assert "attempts 2 of 3" in tried


def test_an_empty_patch_is_no_file() -> None:
    empty = Artifact(1, 142, 1, "changes.patch", "patch", 0, "", NOW)
    job = replace(job_snapshot().job, result={})
    snapshot = job_snapshot(job=job, artifacts=[empty])
    (item, *_) = JOB_TABS["artifacts"].items(snapshot, 80, NOW)
    assert text(item.rows[item.title_rows]).startswith("  changes.patch  no changes so far  run 1")
    assert JOB_TABS["diff"].count(snapshot) == 0
    assert JOB_TABS["artifacts"].count(snapshot) == 0


def test_the_log_of_a_lost_run_ends_with_that() -> None:
    lost = replace(run(142, 1, RunStatus.INTERRUPTED), finished_at=NOW, error="the worker was lost")
    book = LogBuffer()
    book.know([lost])
    book.add([chunk(1, 0, "half a line")])
    book.end_runs(1)
    book.end_runs(1)
    end = ("-- run 1 was interrupted: the worker was lost --", "warns")
    assert lines_of(book) == [("half a line", ""), end]
