"""Recovery times after faults.

The recovery time is the number of seconds from a fault during a run until the job's next progress:
a run starts, a surviving run writes or parks, or the job ends. A fault affects a job that was
running on the affected worker, or on any worker for a database fault. Retry delays in between are
included. Clock shifts do not interrupt runs and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from draftsman.jobs.job import TERMINAL
from draftsman_soak.final_state import JobRecord, RecordedEvent
from draftsman_soak.ledger import Fault

UNDECIDED = frozenset({"queued", "resumed", "retrying", "claimed"})
"""Statuses in which no run has started."""


def recoveries(jobs: Iterable[JobRecord], faults: Sequence[Fault]) -> list[tuple[str, float]]:
    """Return the kind of fault and the seconds of each recovery."""
    hits = [fault for fault in faults if fault.interrupts]
    return [(hit.kind, seconds) for job in jobs for hit in hits for seconds in _recovery(job, hit)]


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that this share of the values does not exceed, or None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]


def _recovery(job: JobRecord, fault: Fault) -> Iterator[float]:
    if fault.job not in (None, job.number) or not _was_hit(job, fault):
        return
    for moment in job.job_events:
        if moment.at > fault.at and _is_progress(moment):
            yield moment.at - fault.at
            return


def _was_hit(job: JobRecord, fault: Fault) -> bool:
    """Return whether the fault hit a run of the job."""
    moves = [moment for moment in job.job_events if moment.to is not None]
    for before, after in pairwise(moves):
        if before.at <= fault.at < after.at:
            affected = fault.worker is None or before.actor == f"worker:{fault.worker}"
            return before.to == "running" and affected
    return False


def _is_progress(moment: RecordedEvent) -> bool:
    if moment.to in TERMINAL:
        return True
    return moment.actor.startswith("worker:") and moment.to not in UNDECIDED
