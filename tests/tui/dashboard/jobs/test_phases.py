"""The time of a job in the queue, in runs and waiting for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rich.cells import cell_len

from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.run import Run, RunStatus
from draftsman.questions.question import Question, QuestionStatus
from draftsman_tui.dashboard.jobs.details.phases import (
    BREAK,
    QUEUE,
    RUN,
    WAIT,
    Phase,
    bar,
    chart,
    job_phases,
)
from draftsman_tui.dashboard.jobs.details.row_layout import Row
from tests.tui.dashboard.fixtures_data import NOW, job_snapshot


def at(minutes: float) -> datetime:
    return NOW - timedelta(minutes=100 - minutes)


def _job(**fields: object) -> Job:
    return replace(
        job_snapshot().job,
        **{"created_at": at(0), "finished_at": None, "status": Status.RUNNING} | fields,  # type: ignore[arg-type]
    )


def _run(ordinal: int, start: float, end: float | None, status: RunStatus) -> Run:
    stop = None if end is None else at(end)
    fields = {"ordinal": ordinal, "started_at": at(start), "finished_at": stop, "status": status}
    return replace(job_snapshot().details.runs[0], **fields)  # type: ignore[arg-type]


def _question(ordinal: int, start: float, end: float | None) -> Question:
    resolution = {"outcome": "answered", "by": ["ben"], "via": "person"}
    status = QuestionStatus.OPEN if end is None else QuestionStatus.ANSWERED
    return replace(
        job_snapshot().details.questions[0],
        ordinal=ordinal,
        asked_at=at(start),
        answered_at=None if end is None else at(end),
        expires_at=None,
        status=status,
        resolution=None if end is None else resolution,
    )


def _texts(rows: Sequence[Row]) -> list[str]:
    return ["".join(cell.text for cell in row).rstrip() for row in rows]


def _story(wait: float = 40) -> list[Phase]:
    """Return a question of so many minutes between a run and a failed one, and a third run."""
    runs = [
        _run(1, 10, 30, RunStatus.PARKED),
        _run(2, 30 + wait, 50 + wait, RunStatus.FAILED),
        _run(3, 55 + wait, None, RunStatus.RUNNING),
    ]
    now = at(60 + wait)
    return job_phases(_job(), runs, [_question(1, 30, 30 + wait)], now)


def test_phases_follow_each_other_and_their_bar_fills_its_width() -> None:
    runs = [_run(1, 10, 30, RunStatus.PARKED), _run(2, 80, None, RunStatus.RUNNING)]
    found = job_phases(_job(), runs, [_question(1, 30, 70)], NOW)
    minutes = [(part.kind, part.seconds / 60) for part in found]
    assert minutes == [(QUEUE, 10), (RUN, 20), (WAIT, 40), (QUEUE, 10), (RUN, 20)]
    row = bar(found, 100)
    text = "".join(cell.text for cell in row)
    assert len(text) == 100
    assert text.endswith("░ queued 20 min  █ runs 40 min  ▒ waits 40 min")
    drawn = text[: text.index("  ░")]
    assert abs(drawn.count("▒") / len(drawn) - 0.4) < 0.03
    assert bar([], 100) == ()
    assert "█" in "".join(cell.text for cell in bar(found, 10))


def test_phases_have_names_and_outcomes() -> None:
    assert [(part.name, part.outcome) for part in _story()] == [
        ("queued", ""),
        ("run 1", "parked"),
        ("question /1", "answered by ben"),
        ("run 2", "failed"),
        ("retrying", ""),
        ("run 3", "running"),
    ]
    sleeps = job_phases(_job(status=Status.SCHEDULED), [_run(1, 5, 10, RunStatus.PARKED)], [], NOW)
    assert [part.name for part in sleeps] == ["queued", "run 1", "scheduled"]
    (wait,) = job_phases(_job(), [], [_question(1, 0, None)], NOW)
    assert (wait.name, wait.outcome) == ("question /1", "open")


def test_a_wait_ends_with_its_answer_or_expiry_or_with_what_follows() -> None:
    runs = [_run(1, 0, 10, RunStatus.PARKED), _run(2, 50, None, RunStatus.RUNNING)]
    expired = replace(
        _question(1, 10, None), status=QuestionStatus.EXPIRED, expires_at=at(30), resolution={}
    )
    superseded = replace(expired, status=QuestionStatus.SUPERSEDED, expires_at=at(900))
    late = replace(_question(1, 10, None), expires_at=at(30))
    for given, minutes in ((expired, 20), (superseded, 40), (late, 40)):
        found = job_phases(_job(), runs, [given], NOW)
        assert [part.seconds / 60 for part in found if part.kind == WAIT] == [minutes], given.status
    # an open question that is past its expiry waits until the leader ends it
    (_, wait) = job_phases(_job(), runs[:1], [late], NOW)
    assert (wait.kind, wait.seconds / 60) == (WAIT, 90)


def test_questions_that_were_asked_at_once_are_one_wait() -> None:
    runs = [_run(1, 0, 10, RunStatus.PARKED), _run(2, 50, None, RunStatus.RUNNING)]
    asked = [_question(1, 10, 20), _question(2, 10, 40)]
    (wait,) = [part for part in job_phases(_job(), runs, asked, NOW) if part.kind == WAIT]
    assert (wait.name, wait.seconds / 60) == ("questions /1, /2", 30)
    assert wait.outcome == "answered by ben; answered by ben"


def test_a_chart_has_a_bar_for_each_phase_on_one_axis() -> None:
    rows = chart(_story(), 120, 10, over=False)
    axis, *lines = _texts(rows)
    assert BREAK not in axis
    assert axis.endswith("now")
    assert axis.count(":") >= 4
    bars = [(line.find("█"), line.find("▒"), line.find("░"), cell_len(line)) for line in lines]
    starts = [max(signs) for *signs, _ in bars]
    assert starts == sorted(starts)
    # each bar begins where the one before ends
    assert [end for *_, end in bars][:-1] == starts[1:]
    assert bars[-1][-1] == 120
    words = " ".join("\n".join(lines).split())
    assert "run 2 failed 20 min" in words
    assert "question /1 answered by ben 40 min" in words
    scale = 120 - starts[0]
    sizes = [end - start for start, (*_, end) in zip(starts, bars, strict=True)]
    for size, part in zip(sizes, _story(), strict=True):
        assert abs(size / scale - part.seconds / 6000) < 0.02, part


def test_a_long_wait_is_shortened_with_a_break_and_a_note() -> None:
    axis, *lines = _texts(chart(_story(6000), 120, 10, over=False))
    assert f"{BREAK} shortened" in axis
    (broken,) = (line for line in lines if BREAK in line)
    assert "question /1" in broken
    assert "4 d" in broken
    runs = [line.count("█") for line in lines if "run " in line]
    assert sum(runs) > 30
    assert not any(BREAK in line for line in _texts(chart(_story(6), 120, 10, over=False)))


def test_a_chart_keeps_to_its_rows_and_its_width() -> None:
    runs = [_run(nth, nth, nth + 0.5, RunStatus.FAILED) for nth in range(1, 60)]
    parts = job_phases(_job(finished_at=at(70), status=Status.FAILED), runs, [], NOW)
    for width in (20, 44, 80, 200):
        for most in (5, 12):
            rows = chart(parts, width, most, over=True)
            assert len(rows) <= most
            lines = _texts(rows)
            assert any(f"{len(parts) - most + 2} earlier" in line for line in lines)
            assert width < 40 or max(map(cell_len, lines)) <= width
            assert width < 80 or " end" in lines[0]
    assert chart([], 80, 5, over=False) == []
    assert len(chart(parts[:1], 80, 5, over=False)) == 2
