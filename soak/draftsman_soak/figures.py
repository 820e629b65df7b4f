"""Figures of a soak; the fields are the keys of `--json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from draftsman.jobs.job import TERMINAL
from draftsman_soak.final_state import FinalState, JobRecord, RecordedEvent, Violations
from draftsman_soak.ledger import Fault, Ledger

# Recovery times after faults.
#
# The recovery time is the number of seconds from a fault during a run until the job's next
# progress: a run starts, a surviving run writes or parks, or the job ends. A fault affects a job
# that was running on the affected worker, or on any worker for a database fault. Retry delays in
# between are included. Clock shifts do not interrupt runs and are left out.


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


KILLS = ("worker killed", "agent killed", "supervisor killed", "database killed")


@dataclass(slots=True)
class Figures:
    """Counts of all seeds so far, times in seconds; from `effects_duplicated` on they must be 0."""

    jobs: int = 0
    finished: Counter[str] = field(default_factory=Counter)
    """Finished jobs by status."""
    runs: int = 0
    answers_given: int = 0
    answers_accepted: int = 0
    kills: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Injected faults by kind, kills included."""
    faults_missed: Counter[str] = field(default_factory=Counter)
    """Faults without a target by kind, such as an agent kill while no agent ran."""
    restarts: int = 0
    unexpected_exits: Counter[int] = field(default_factory=Counter)
    """Unexpected exits of workers by exit code."""
    effects: int = 0
    effects_rejected: int = 0
    """Repeated requests, such as a suspended run's, that created no effect."""
    recovered: int = 0
    """Number of times that a job recovered from a fault."""
    recovery_p50: float | None = None
    recovery_p95: float | None = None
    recovery: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """`recovered`, `p50` and `p95` by kind of fault, slowest first."""
    effects_duplicated: int = 0
    answers_lost: int = 0
    jobs_lost: int = 0
    jobs_stuck: int = 0
    jobs_run_concurrently: int = 0
    jobs_stalled: int = 0
    """Transactions of a client during which no job made progress."""
    jobs_wrong_outcome: int = 0
    invariants_broken: int = 0
    unsupported_faults: list[str] = field(default_factory=list)
    """Faults that this machine does not support."""
    findings: list[str] = field(default_factory=list)
    """A line for each violation."""
    failed: dict[int, str] = field(default_factory=dict)
    """Folder with the logs, by failed seed."""
    _times: list[tuple[str, float]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether there are no violations."""
        return not self.findings

    def add(self, seed: int, world: FinalState, ledger: Ledger, verdict: Violations) -> None:
        """Add the figures of a seed."""
        jobs = world.jobs.values()
        self.jobs += len(ledger.jobs)
        self.finished.update(job.status for job in jobs)
        self.runs += sum(moment.kind == "job_started" for job in jobs for moment in job.job_events)
        self.answers_given += len(ledger.submitted_answers)
        self.answers_accepted += sum(answer.accepted for answer in ledger.submitted_answers)
        self.faults.update(fault.kind for fault in ledger.faults)
        self.faults_missed.update(ledger.missed)
        self.kills = sum(self.faults[kind] for kind in KILLS)
        self.restarts += ledger.restarts
        self.unexpected_exits.update(ledger.exits)
        self._count_effects(world)
        self._add_recoveries(recoveries(jobs, ledger.faults))
        self.unsupported_faults = sorted({*self.unsupported_faults, *ledger.unsupported})
        self._add_violations(seed, verdict)

    def _count_effects(self, world: FinalState) -> None:
        for job in world.jobs.values():
            self.effects += len(job.effects.created)
            requests = sum(not request.recorded for request in job.effects.requests)
            self.effects_rejected += max(0, requests - len(job.effects.created))

    def _add_recoveries(self, times: Iterable[tuple[str, float]]) -> None:
        self._times += times
        seconds = [value for _, value in self._times]
        self.recovered = len(seconds)
        self.recovery_p50 = percentile(seconds, 0.5)
        self.recovery_p95 = percentile(seconds, 0.95)
        kinds: dict[str, list[float]] = {}
        for kind, value in self._times:
            kinds.setdefault(kind, []).append(value)
        self.recovery = {
            kind: {
                "recovered": len(values),
                "p50": percentile(values, 0.5),
                "p95": percentile(values, 0.95),
            }
            for kind, values in sorted(kinds.items(), key=lambda item: -max(item[1]))
        }

    def _add_violations(self, seed: int, verdict: Violations) -> None:
        self.effects_duplicated += len(verdict.doubled)
        self.answers_lost += len(verdict.answers_lost)
        self.jobs_lost += len(verdict.jobs_lost)
        self.jobs_stuck += len(verdict.stuck)
        self.jobs_run_concurrently += len(verdict.overlapping)
        self.jobs_stalled += len(verdict.stalled)
        self.jobs_wrong_outcome += len(verdict.wrongly_ended)
        self.invariants_broken += len(verdict.broken)
        self.findings += [f"seed {seed}: {finding}" for finding in verdict.findings]
