"""How long it takes until work goes on after a fault.

Recovery is the time, in seconds, from a fault that hit a running job until the job's next sign of
work: a run of it starts, a run that survived writes or parks, or the job ended. A fault hits a job
when the trail says that it was running then, on the worker that was hit, or anywhere for a fault of
the database. Delays before a retry count where they lie between. Shifts of the clock interrupt
nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from draftsman.domain.job import TERMINAL
from draftsman_soak.final_state import JobRecord, RecordedEvent
from draftsman_soak.ledger import Fault

UNDECIDED = frozenset({"queued", "resumed", "retrying", "claimed"})
"""Statuses in which nobody works on the job yet."""


def recoveries(jobs: Iterable[JobRecord], faults: Sequence[Fault]) -> list[tuple[str, float]]:
    """Return the kind of the fault and the seconds of each recovery."""
    hits = [fault for fault in faults if fault.interrupts]
    return [(hit.kind, seconds) for job in jobs for hit in hits for seconds in _recovery(job, hit)]


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that this share of the values does not exceed; None where there is none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]


def _recovery(job: JobRecord, fault: Fault) -> Iterator[float]:
    if fault.job not in (None, job.number) or not _ran(job, fault):
        return
    for moment in job.job_events:
        if moment.at > fault.at and _works(moment):
            yield moment.at - fault.at
            return


def _ran(job: JobRecord, fault: Fault) -> bool:
    """Return whether the job was running then, where the fault was."""
    moves = [moment for moment in job.job_events if moment.to is not None]
    for before, after in pairwise(moves):
        if before.at <= fault.at < after.at:
            here = fault.worker is None or before.actor == f"worker:{fault.worker}"
            return before.to == "running" and here
    return False


def _works(moment: RecordedEvent) -> bool:
    if moment.to in TERMINAL:
        return True
    return moment.actor.startswith("worker:") and moment.to not in UNDECIDED
