"""Measurement of recovery, from a fault during a run to the job's next progress."""

from __future__ import annotations

from draftsman_soak.figures import percentile, recoveries
from draftsman_soak.final_state import JobRecord, RecordedEvent
from draftsman_soak.ledger import Fault
from tests.support.cases import cases

KILLED = JobRecord(
    1,
    "soak:steps",
    "completed",
    job_events=(
        RecordedEvent("job_created", 0, to="queued"),
        RecordedEvent("job_started", 10, "worker:a", run=1, to="running"),
        RecordedEvent("soak_mark", 12, "worker:a", run=1),
        RecordedEvent("job_released", 21, to="resumed"),
        RecordedEvent("job_claimed", 22, "worker:b", to="claimed"),
        RecordedEvent("job_started", 23, "worker:b", run=2, to="running"),
        RecordedEvent("soak_mark", 25, "worker:b", run=2),
        RecordedEvent("job_completed", 30, "worker:b", to="completed"),
    ),
)


@cases(
    ("fault", "seconds"),
    [
        (Fault("worker killed", 20, worker="a"), [3]),
        (Fault("worker killed", 20, worker="b"), []),  # another worker's run
        (Fault("database killed", 20), [3]),
        (Fault("database killed", 24), [1]),  # the run survived, and wrote
        (Fault("database killed", 26), [4]),  # its end counts
        (Fault("database killed", 5), []),  # it waited in the queue
        (Fault("database killed", 22.5), []),  # nobody ran it
        (Fault("database killed", 31), []),  # it had ended
        (Fault("agent killed", 20, job=1), [3]),
        (Fault("agent killed", 20, job=2), []),
        (Fault("clock put on", 20, interrupts=False), []),
    ],
)
def test_recovery_time_is_from_the_fault_to_the_next_work(
    fault: Fault, seconds: list[float]
) -> None:
    assert recoveries([KILLED], [fault]) == [(fault.kind, value) for value in seconds]


def test_every_fault_counts() -> None:
    faults = [Fault("worker killed", 20, worker="a"), Fault("connections cut", 24)]
    assert recoveries([KILLED], faults) == [("worker killed", 3), ("connections cut", 1)]


@cases(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([4.0], 0.95, 4.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([float(value) for value in range(1, 101)], 0.95, 95.0),
    ],
)
def test_percentiles_of_recovery_times(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected
