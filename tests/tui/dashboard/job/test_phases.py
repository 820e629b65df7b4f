"""The time of a job in the queue, in runs and waiting for people."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from draftsman.domain.job import Status
from draftsman_tui.dashboard.job.phases import QUEUE, RUN, WAIT, bar, phases
from tests.tui.dashboard.fixtures_data import NOW, job_snapshot


def test_phases_follow_each_other_and_their_bar_fills_its_width() -> None:
    snapshot = job_snapshot()

    def at(minutes: float) -> datetime:
        return NOW - timedelta(minutes=100 - minutes)

    job = replace(snapshot.job, created_at=at(0), finished_at=None, status=Status.RUNNING)
    run = replace(snapshot.runs[0], started_at=at(10), finished_at=at(30))
    later = replace(run, started_at=at(80), finished_at=None)
    question = replace(snapshot.questions[0], asked_at=at(30), answered_at=at(70))
    found = phases(job, [run, later], [question], NOW)
    minutes = [(kind, (end - start).total_seconds() / 60) for kind, start, end in found]
    assert minutes == [(QUEUE, 10), (RUN, 20), (WAIT, 40), (QUEUE, 10), (RUN, 20)]
    row = bar(found, 100)
    text = "".join(cell.text for cell in row)
    assert len(text) == 100
    assert text.endswith("░ queued 20 min  █ runs 40 min  ▒ waits 40 min")
    drawn = text[: text.index("  ░")]
    assert abs(drawn.count("▒") / len(drawn) - 0.4) < 0.03
    assert bar([], 100) == ()
    assert "█" in "".join(cell.text for cell in bar(found, 10))
