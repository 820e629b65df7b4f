"""The leader's work: due jobs, expired questions, dead workers."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from math import exp

from tests.core.stateful.model.people import SYSTEM
from tests.core.stateful.model.questions import QuestionModel
from tests.core.stateful.model.state import WAITING, Job, Refusal
from tests.core.stateful.model.submission import CHAIN_LIMIT, SubmissionModel

LEASE = 30.0
"""Seconds without a heartbeat after which a run is lost."""
UNLOCKED = 15.0
"""Seconds that a silent worker's session lock is free before it counts as dead."""
FORGOTTEN = 60.0
"""Seconds after which a silent worker is deregistered."""
DAY = 86_400.0
"""Seconds until a job that was lost with others is tried at the latest."""
Term = tuple[int, int] | None
"""Owner and term of a leader; None: a manual sweep."""


class Model(SubmissionModel, QuestionModel):
    """All transactions."""

    def leads(self, term: Term) -> bool:
        """Return whether a sweep of this term may work."""
        return term is None or (term == (self.leader, self.term) and self.leader_until > self.now)

    def acquire(self, owner: int, seconds: float) -> int | None:
        dead = self._dead()
        if self.leader is not None and self.leader_until > self.now and self.leader not in dead:
            return None
        self.leader = owner
        self.term = self.term + 1
        self.leader_until = self.now + seconds
        return self.term

    def renew(self, term: tuple[int, int], seconds: float) -> bool:
        if leads := self.leads(term):
            self.leader_until = self.now + seconds
        return leads

    def resign(self, term: tuple[int, int]) -> None:
        if self.leads(term):
            self.leader_until = self.now

    def expire(self, term: Term) -> int:
        if not self.leads(term):
            return 0
        changed = self._escalate()
        due = [job for job in self.jobs if job.open and self._over(job.open)]
        for job in due:
            item = job.open
            assert item is not None
            assert job.status in WAITING
            default = item.on_expire == "default"
            item.status = "answered" if default else "expired"
            item.outcome = "answered" if default else "expired"
            job.job_events.append("question_expired")
            job.move("expired" if item.on_expire in ("expire", "escalate") else "resumed")
        return changed + len(due)

    def _escalate(self) -> int:
        due = [job for job in self.jobs if job.open and self._escalates(job.open)]
        for job in due:
            item = job.open
            assert item is not None
            assert item.expires is not None
            item.escalated = True
            item.approvers = (*(name for name in item.approvers if name != "leads"), "leads")
            item.expires = self.now + item.expires - item.asked
            item.timed(self.now)
            job.job_events.append("question_escalated")
        return len(due)

    def remind(self, term: Term) -> int:
        """Skip due reminders: the examples have no targets."""
        questions = [job.open for job in self.jobs if job.open and job.open.remind is not None]
        due = [item for item in questions if item.remind is not None and item.remind <= self.now]
        if not self.leads(term):
            return 0
        for item in due:
            item.plan(self.now)
        return len(due)

    def promote(self, term: Term) -> int:
        late = {"scheduled", "retrying"}
        due = [
            job
            for job in self.jobs
            if job.status in late and job.due is not None and job.due <= self.now
        ]
        if not self.leads(term):
            return 0
        for job in due:
            slept = job.status == "scheduled" and job.runs
            if job.status == "retrying":
                job.due = None
            job.move("resumed" if slept else "queued")
        return len(due)

    def rescue(self, term: Term, ended_workers: Collection[int]) -> int:
        dead = {*self._dead(), *ended_workers}
        due = [job for job in self.jobs if job.lease is not None and self._lost(job, dead)]
        if not self.leads(term):
            return 0
        alone = [self._was_alone(job, dead) for job in due]
        for job, charged in zip(due, alone, strict=True):
            self._take_back(job, charged=charged)
        return len(due)

    def _was_alone(self, job: Job, dead: Collection[int]) -> bool:
        """Return whether a lost run spends an attempt: its worker did not end with several."""
        place = self._worker_of(job)
        if place not in dead:
            return True
        crew = [
            one
            for one in self.jobs
            if (one.status == "running" and self._worker_of(one) == place)
            or (one.suspected_of == place and self._worker_of(one) != place)
        ]
        return len(crew) == 1

    def _worker_of(self, job: Job) -> int | None:
        return None if job.lease is None else self.leases[job.lease].worker

    def deregister(self, term: Term) -> int:
        dead = self._dead()
        busy = {self.leases[job.lease].worker for job in self.jobs if job.lease is not None}
        due = [
            one
            for place, one in enumerate(self.workers)
            if one.registered
            and place not in busy
            and (place in dead or one.beat < self.now - FORGOTTEN)
        ]
        if not self.leads(term):
            return 0
        for worker in due:
            worker.registered = False
            worker.unlocked = None
        return len(due)

    def _dead(self) -> set[int]:
        """Update the session locks, and return the workers known to be dead."""
        dead = set()
        for place, worker in enumerate(self.workers):
            if worker.registered and worker.unlocked is None:
                worker.unlocked = self.now
            border = self.now - UNLOCKED
            free = worker.unlocked is not None and worker.unlocked < border
            if worker.registered and not worker.here and free and worker.beat < border:
                dead.add(place)
        return dead

    def _lost(self, job: Job, dead: Collection[int]) -> bool:
        assert job.lease is not None
        place = self.leases[job.lease].worker
        worker = self.workers[place]
        sign = job.beat
        if job.status == "claimed":
            sign = max(worker.beat, job.claimed_at) if worker.registered else job.claimed_at
        return place in dead or sign < self.now - LEASE

    def _take_back(self, job: Job, *, charged: bool) -> None:
        if job.status == "claimed":
            job.move(job.claimed_from or "")
            return
        spent = charged and job.attempts + 1 >= job.request.max_attempts
        status = {"retry": "retrying", "resume": "resumed"}.get(job.request.on_lost, "failed")
        is_noted = not charged and job.suspected_of is None
        if not (charged or is_noted) and status == "resumed":
            status = "retrying"
        if charged and not job.cancel:
            job.attempts += 1
        spent = spent or self._chain_is_over(job)
        if status in ("retrying", "resumed") and not spent and not job.cancel:
            if status == "retrying":
                failures = job.attempts if charged else job.attempts + 1
                job.due = self.now + (exp(min(10, failures)) if charged or is_noted else DAY)
            job.suspected_of = job.suspected_of if charged else self._worker_of(job)
        status = self.end(job, "dead_letter" if spent else status, "interrupted", "TRANSIENT_INFRA")
        if status == "failed" and job.request.on_lost == "new_job":
            with suppress(Refusal):
                self.successor(self.jobs.index(job), SYSTEM, fresh=True)

    def _chain_is_over(self, job: Job) -> bool:
        """Return whether the chain of automatic retries is as long as the job's attempts."""
        if job.request.on_lost != "new_job":
            return False
        length = 0
        at = job
        while at.retry_of is not None and at.invoker == SYSTEM.voter:
            length = length + 1
            at = self.jobs[at.retry_of]
        return length + 1 >= job.request.max_attempts or job.chain >= CHAIN_LIMIT
