"""Counts and durations of the runs of this worker."""

from __future__ import annotations

from typing import Final

from draftsman.metrics import Counter, Distribution, Histogram, Totals

LOST: Final = "lost"
WAITING: Final = "waiting"
STARTED: Final = Totals(
    Counter("runs_started_total", "Runs that this worker started.", ("queue", "type"))
)
ENDED: Final = Totals(
    Counter(
        "runs_ended_total",
        "Runs of this worker that ended. The outcome is the next status of the job, such as"
        " completed, retrying or dead_letter; waiting: for people; lost: another worker has it.",
        ("queue", "type", "outcome"),
    )
)
QUEUE_WAIT: Final = Distribution(
    Histogram(
        "queue_wait_seconds",
        "Durations from when a job began to wait for a worker until a run of this worker started.",
        ("queue", "type"),
    )
)
SECONDS: Final = Distribution(
    Histogram("run_seconds", "Durations of runs of this worker.", ("queue", "type"))
)
