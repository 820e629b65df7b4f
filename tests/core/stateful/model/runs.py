"""Claims, runs and their ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import exp

from tests.core.stateful.model.state import CLAIMABLE, Job, Lease, State

KEPT = 5
"""Number of stored checkpoints."""


class RunModel(State):
    def exchange(
        self,
        worker: int,
        done: Sequence[tuple[int, int]],
        *,
        queues: Sequence[str],
        types: Collection[str],
        free: int,
        ahead: int,
    ) -> set[tuple[int, str]]:
        """Settle and claim; return (job, status) of the settled and the claimed jobs."""
        picked = self.picks(queues, types, free + ahead)
        answer = set()
        for lease, result in done:
            if (job := self.holder(lease)) is not None:
                answer.add((self.leases[lease].job, self.end(job, "completed", "completed")))
                job.result = result if job.status == "completed" else None
        for rank, place in enumerate(picked):
            answer.add((place, self.take(place, worker, slot=rank < free)))
        return answer

    def picks(self, queues: Sequence[str], types: Collection[str], limit: int) -> list[int]:
        """Return the jobs that a claim takes, in order."""
        places = [place for queue in queues for place in self.order(queue)]
        return [place for place in places if self.jobs[place].request.type in types][:limit]

    def start(self, lease: int) -> bool:
        """Start jobs that were claimed ahead."""
        if (job := self.holder(lease, "claimed")) is None:
            return False
        self._begin(job)
        return True

    def release_claims(self, lease: int) -> None:
        """Release jobs that were claimed ahead."""
        if (job := self.holder(lease, "claimed")) is not None:
            job.move(job.claimed_from or "")

    def owns(self, lease: int) -> Job | None:
        """Return the job if this run may write to it: it is owned and has no cancel request."""
        job = self.holder(lease)
        return job if job is not None and not job.cancel else None

    def records(self, lease: int) -> Job | None:
        """Return the job if this run may record usage: also after it parked, in its last calls."""
        job = self.owner(lease)
        run = self.leases[lease].run
        return job if run is not None and job.runs[run] in ("running", "parked") else None

    def checkpoint(self, job: Job, data: int) -> None:
        job.checkpoints = [*job.checkpoints, data][-KEPT:]

    def end(self, job: Job, status: str, run: str, error: str | None = None) -> str:
        """End a run; a job with a cancel request is canceled, whatever the outcome."""
        job.runs[-1] = "canceled" if job.cancel else run
        job.error = error or job.error
        status = "canceled" if job.cancel else status
        job.cancel = status == "canceled"
        job.move(status)
        return status

    def snooze(self, job: Job, seconds: float) -> str:
        if not job.cancel:
            job.due = self.now + seconds
        return self.end(job, "scheduled", "parked")

    def fail(self, job: Job, error: str, wait: float) -> str:
        """End a run with an error of this class; `wait` is the retry-after of the service."""
        status = "failed"
        due = job.due
        if error == "TRANSIENT_INFRA":
            last = job.attempts + 1 >= job.request.max_attempts
            status = "dead_letter" if last else "retrying"
            due = self.now + max(exp(min(10, job.attempts + 1)), wait)
            job.attempts += not job.cancel
        elif error == "TRANSIENT_APP":
            status = "retrying" if job.retries < job.request.max_retries else "dead_letter"
            due = self.now + wait
            job.retries += status == "retrying" and not job.cancel
        if status == "retrying" and not job.cancel:
            job.due = due
        return self.end(job, status, "failed", error)

    def beat(self, worker: int, leases: Sequence[int]) -> tuple[bool, set[tuple[int, bool, bool]]]:
        """Send a heartbeat; return whether the worker is registered, and each lease's state."""
        owner = self.workers[worker]
        pulses = set()
        if owner.registered:
            owner.beat = self.now
        for lease in leases:
            job = self.jobs[self.leases[lease].job]
            if self.holder(lease) is not None:
                job.beat = self.now
            pulses.add((lease, job.lease == lease, job.cancel))
        return owner.registered, pulses

    def release_lost_claims(self, worker: int, known: Collection[int]) -> int:
        """Release the claims that the worker does not know of."""
        count = 0
        for job in self.jobs:
            if job.lease is None or self.leases[job.lease].worker != worker or job.lease in known:
                continue
            count += 1
            if job.status == "claimed":
                job.move(job.claimed_from or "")
            else:
                self.end(job, "resumed", "interrupted")
        return count

    def take(self, place: int, worker: int, *, slot: bool = True) -> str:
        """Give a job to a worker, which starts it if a slot is free."""
        job = self.jobs[place]
        assert job.status in CLAIMABLE
        self.leases.append(Lease(worker, place))
        origin = job.status
        job.move("claimed")
        job.claimed_from = origin
        job.claimed_at = self.now
        job.lease = len(self.leases) - 1
        if slot:
            self._begin(job)
        return job.status

    def _begin(self, job: Job) -> None:
        assert job.lease is not None
        job.move("running")
        self.leases[job.lease].run = len(job.runs)
        job.runs.append("running")
        job.beat = self.now
