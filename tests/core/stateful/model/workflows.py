"""The lives of jobs in plain Python: runs, crashes, ends, and their children."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, exp

from tests.core.stateful.model.queues import ENDED, RESERVATION, WAITING, QueuedJob, QueueModel
from tests.core.stateful.model.sweeps import LEASE

LIVE = (*WAITING, "running", "scheduled", "retrying", "waiting_for_input")
MET = {"success": ("completed",), "failure": set(ENDED) - {"completed"}, "any": ENDED}
"""The ends of a parent that each condition allows."""
ATTEMPTS = 3
"""The failures of the infrastructure and lost runs that a job survives."""


@dataclass
class WorkflowModel(QueueModel):
    """The queues, and the lives of their jobs."""

    def claim(self, worker: int, queues: list[str], free: int) -> list[int]:
        """Start the first jobs of the queues, and before them those that reserve a queue."""
        reserved = [
            number
            for queue, number in sorted(self.reservations.items())
            if queue in queues and number in self.claimable(queue)
        ]
        others = [
            number
            for queue in queues
            if queue not in self.reservations
            for number in self.claimable(queue)
        ]
        started = (reserved + others)[:free]
        self.start(worker, started)
        return started

    def start(self, worker: int, numbers: list[int]) -> None:
        """Start jobs on a worker."""
        for number in numbers:
            job = self.job(number)
            job.status = "running"
            job.ran = True
            job.worker = worker
            job.beat = self.now
            self.renew(number)

    def exchange(
        self, worker: int, done: list[int], queues: list[str], free: int, started: list[int]
    ) -> list[int]:
        """Complete runs and start the jobs that were free before; return those started.

        The worker may start more: `started` that got the places of these runs.
        """
        ended = [self.job(number) for number in done]
        first = self.claim(worker, queues, free)
        for job in ended:
            job.status = "canceled" if job.canceling else "completed"
        self.finish(ended, None)
        handed = started[len(first) : free]
        places = [n for queue in queues for n in self.next(queue) if self.buckets(self.job(n))]
        assert set(handed) <= set(places), f"{handed} got no place"
        self.start(worker, handed)
        return first + handed

    def end(self, number: int, how: str, seconds: float = 0.0) -> str:
        """End a run; return the status of the job."""
        job = self.job(number)
        job.worker = None
        if job.canceling:
            how = "canceled"
        if how == "retrying":
            how = self.spend(job, how)
        if how in ENDED:
            self.finish([job], how)
        elif how == "resumed":
            job.status = how
        else:
            job.status = how
            job.wakes = job.wakes if how == "retrying" else self.now + seconds
            if how != "retrying":
                self.end_reservation(number)
            if how == "waiting_for_input":
                job.asked = 1 + max(other.asked for other in self.jobs)
            if how == "waiting_for_input" and self.limits.released_keys and job.key is not None:
                del self.holders[job.key]
                self.assign(job.key)
            job.placed = False
            self.seat()
        return job.status

    def spend(self, job: QueuedJob, status: str) -> str:
        """Spend an attempt of a job; return its status, a dead letter without any left."""
        job.attempts += 1
        if job.attempts >= ATTEMPTS:
            return "dead_letter"
        job.wakes = self.now + exp(job.attempts)
        return status

    def finish(
        self, jobs: list[QueuedJob], status: str | None, leaving: Iterable[QueuedJob] = ()
    ) -> None:
        """End jobs at once: their children, then their keys, then their places are free.

        Without a status, each has its own already. The places of `leaving` are freed with them.
        """
        keys = [job.key for job in jobs if not job.blocked]
        for job in jobs:
            job.status = status or job.status
            job.worker = None
            job.blocked = False
            job.swept = False
            self.end_reservation(job.number)
        self.holders = {
            key: holder for key, holder in self.holders.items() if self.job(holder) not in jobs
        }
        ended = {job.number for job in jobs}
        self.resolve(
            [job for job in self.jobs if job.blocked and ended & {n for n, _ in job.parents}],
            self.awaited(ended),
        )
        self.stop_groups(jobs)
        self.assign(*keys)
        for job in [*jobs, *leaving]:
            job.placed = False
        self.seat()

    @abstractmethod
    def awaited(self, ended: set[int]) -> list[QueuedJob]:
        """Return the parked jobs of which these were the last that they wait for."""

    @abstractmethod
    def stop_groups(self, ended: list[QueuedJob]) -> None:
        """Skip the jobs of groups in which a job has failed."""

    def crash(self, worker: int) -> None:
        """Rescue the runs of a worker, and runs that no worker knows of for the time of a lease."""
        running = [job for job in self.jobs if job.worker is not None]
        lost = [job for job in running if job.worker == worker or job.beat < self.now - LEASE]
        for job in lost:
            ends = {"resume": "resumed", "retry": "retrying", "fail": "failed"}
            status = ends[job.request.on_lost]
            job.status = "canceled" if job.canceling else self.spend(job, status)
            job.worker = None
        retried = [job for job in lost if job.status == "retrying"]
        self.finish([job for job in lost if job.status in ENDED], None, leaving=retried)

    def renew(self, number: int) -> None:
        """Renew the reservation of a running job."""
        for queue, (job, until) in list(self.reserved.items()):
            if job == number and until > self.now:
                self.reserved[queue] = (job, max(until, self.now + RESERVATION))

    def answer(self, number: int) -> None:
        """Answer the question of a job, and those of its repository: all have the same text."""
        first = self.job(number)
        same = [
            job
            for job in self.jobs
            if job.status == first.status and job.request.repo == first.request.repo is not None
        ]
        for job in [first, *sorted(same, key=lambda job: job.asked)]:
            if job.status == "waiting_for_input":
                self.requeue([job])

    def requeue(self, jobs: list[QueuedJob]) -> None:
        """Queue jobs that waited for a time or for a person; they ask for places again."""
        for job in jobs:
            job.status = "queued" if job.status == "retrying" else "resumed"
        self.assign(*[job.key for job in jobs])
        self.seat()
        self.end_waiting()

    def pass_time(self, seconds: float, beating: list[int]) -> None:
        """Let time pass; these runs have a heartbeat, rates allow starts, and jobs wake up."""
        self.now += seconds
        for number in beating:
            self.job(number).beat = self.now
            self.renew(number)
        self.seat()
        self.requeue([job for job in self.sleeping() if job.wakes <= self.now])

    def until(self, moment: str) -> float:
        """Return the seconds until the next start of a rate or wake-up, almost or half of them."""
        times = [job.wakes for job in self.sleeping()]
        waiting = [job for job in self.jobs if self.hold(job) == "limit"]
        times += [self.limits.next_start(b, self.now) for job in waiting for b in self.full(job)]
        due = min((time for time in times if time > self.now), default=self.now + 20.0)
        exact = ceil((due - self.now) * 8) / 8  # eighths are exact
        return {"due": exact, "almost": exact - 0.125, "half": ceil(exact * 4) / 8}[moment]

    def sleeping(self) -> Iterable[QueuedJob]:
        """Return the jobs that a time wakes up."""
        return [job for job in self.jobs if job.status in ("scheduled", "retrying")]

    # dependencies

    def fate(self, job: QueuedJob) -> str:
        """Return the effect of the ends of the parents: ready, skipped or waiting."""
        ends = [(self.job(number).status, condition) for number, condition in job.parents]
        if any(status in ENDED and status not in MET[on] for status, on in ends):
            return "skipped"
        return "ready" if all(status in ENDED for status, _ in ends) else "waiting"

    def resolve(self, children: Iterable[QueuedJob], woken: Iterable[QueuedJob] = ()) -> None:
        """Release the children that may start, and cancel those that never can, all at once.

        Parked jobs are `woken` with them.
        """
        fates = [(job, self.fate(job)) for job in children]
        ready = [job for job, fate in fates if fate == "ready"]
        skipped = [job for job, fate in fates if fate == "skipped"]
        while more := [
            job
            for job in self.jobs
            if job.blocked
            and job not in skipped
            and any(
                self.job(parent) in skipped and "canceled" not in MET[on]
                for parent, on in job.parents
            )
        ]:
            skipped += more
        for job in ready:
            job.blocked = False
        for job in woken:
            job.status = "resumed"
        self.seat()
        for job in skipped:
            job.skipped = True
        if skipped:
            self.finish(skipped, "canceled")
        self.assign(*[job.key for job in ready])

    def cancel_tree(self, number: int) -> str | None:
        """Cancel a job and all below it; return why it is refused."""
        tree = {number}
        while more := self.below(tree) - tree:
            tree |= more
        return self.cancel_all([self.job(n) for n in sorted(tree)])

    def below(self, tree: set[int]) -> set[int]:
        """Return the jobs that wait for these jobs."""
        return {job.number for job in self.jobs if tree & {n for n, _ in job.parents}}

    def cancel_all(self, jobs: list[QueuedJob]) -> str | None:
        """Cancel the unfinished of these jobs; those that run are stopped by their workers."""
        jobs = [job for job in jobs if job.status not in ENDED]
        if not jobs:
            return "Refused"
        self.finish([job for job in jobs if job.blocked], "canceled")
        for job in jobs:
            if job.status == "running":
                job.canceling = True
            elif job.status not in ENDED:
                self.finish([job], "canceled")
        return None

    def retried(self, number: int) -> list[int] | None:
        """Return the jobs of which a retry makes new jobs; None if it is refused."""
        job = self.job(number)
        if job.status not in ENDED or job.status == "completed":
            return None
        if job.retry is not None:
            return []
        skipped = {number}
        while (
            more := {
                other.number
                for other in self.jobs
                if other.skipped and self._skipped_by(other) & skipped
            }
            - skipped
        ):
            skipped |= more
        return [number, *sorted(n for n in skipped - {number} if self.job(n).retry is None)]

    def retry(self, number: int, new: list[int]) -> str | None:
        """Retry a job and those skipped with it, under new numbers; return why it is refused."""
        olds = self.retried(number)
        if not olds:
            return None if olds is not None else "Refused"
        copies = dict(zip(olds, new, strict=True))
        for old, copy in copies.items():
            before = self.job(old)
            request = before.request._replace(priority=before.priority)
            parents = [
                (parent, "any" if old == number and self.job(parent).status in ENDED else on)
                for parent, on in before.parents
            ]
            job = QueuedJob(copy, request, request.priority, parents, blocked=bool(parents))
            job.retry_of = old
            before.retry = copy
            self.arrange([job])
            self.seat()
            if not job.blocked:
                self.assign(job.key)
            self.replace_member(old, copy)
        for old, copy in copies.items():
            if old != number:
                job = self.job(copy)
                job.parents = [(copies.get(parent, parent), on) for parent, on in job.parents]
        self.link([self.job(copy) for copy in new if self.job(copy).blocked])
        return None

    @abstractmethod
    def replace_member(self, old: int, new: int) -> None:
        """Put a retry in the group of its job."""

    def _skipped_by(self, job: QueuedJob) -> set[int | None]:
        """Return the jobs because of which a job was skipped."""
        ends = {n for n, on in job.parents if self.job(n).status not in MET[on]}
        return {*ends, job.skipped_by}
