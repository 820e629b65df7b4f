"""The queues in plain Python: order, pauses, keys, reservations, and the places of limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.core.stateful.model.limits import Limits

WAITING = ("queued", "resumed")
ENDED = ("completed", "failed", "canceled", "dead_letter")
RESERVATION = 600.0
STEP = 100
"""The difference of the positions of successive jobs."""
UNKNOWN = 1 << 60
"""The position of a job that is not in the database."""
_LATER = {"scheduled": "scheduled", "retrying": "backoff"}


class Request(NamedTuple):
    """The request of a job; `repo` is `host/owner/name`."""

    queue: str
    type: str
    priority: int
    key: str | None
    on_lost: str
    repo: str | None = None
    after: tuple[int, ...] = ()
    condition: str = "success"
    behind: tuple[int, ...] = ()
    """The parents in the same batch, by their indexes."""
    group: str | None = None


@dataclass
class QueuedJob:
    """A job as the order and the claim see it."""

    number: int
    request: Request
    priority: int
    parents: list[tuple[int, str]]
    blocked: bool
    """Whether it waits for its parents."""
    status: str = "queued"
    ran: bool = False
    worker: int | None = None
    beat: float = 0.0
    """The time of the last heartbeat of its run."""
    placed: bool = False
    """Whether it has a place in each of its buckets."""
    swept: bool = False
    """Whether a sweep has held it with its type."""
    wakes: float = 0.0
    attempts: int = 0
    canceling: bool = False
    skipped: bool = False
    """Whether the system has canceled it before its start."""
    skipped_by: int | None = None
    """The member of its group that it was skipped because of."""
    asked: int = 0  # which of all questions it asked last
    retry: int | None = None
    retry_of: int | None = None

    @property
    def queue(self) -> str:
        """The queue of the request."""
        return self.request.queue

    @property
    def type(self) -> str:
        """The type of the request."""
        return self.request.type

    @property
    def key(self) -> str | None:
        """The concurrency key."""
        return self.request.key


@dataclass
class QueueModel(ABC):
    """All jobs, in the order of their positions in each queue."""

    limits: Limits = field(default_factory=Limits)
    now: float = 0.0
    jobs: list[QueuedJob] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    """Positions of the database, which order the jobs of different queues."""
    pauses: set[tuple[str, str | None]] = field(default_factory=set)
    holders: dict[str, int] = field(default_factory=dict)
    """The job that holds a concurrency key."""
    reserved: dict[str, tuple[int, float]] = field(default_factory=dict)
    """The job that a queue is reserved for, and until when."""
    turns: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """The position of the last job of each partition of a queue, by priority."""

    def job(self, number: int) -> QueuedJob:
        """Return a job."""
        return next(job for job in self.jobs if job.number == number)

    def numbers(self, *statuses: str) -> list[int]:
        """Return the jobs with one of these statuses, by number."""
        return sorted(job.number for job in self.jobs if job.status in statuses)

    @property
    def reservations(self) -> dict[str, int]:
        """The job that each queue is reserved for now."""
        return {queue: job for queue, (job, until) in self.reserved.items() if until > self.now}

    # waits

    def paused(self, job: QueuedJob) -> bool:
        """Return whether its queue or type is paused."""
        return bool(self.pauses & {(job.queue, None), (job.queue, job.type)})

    def buckets(self, job: QueuedJob) -> list[str]:
        """Return the buckets that a job needs a place in."""
        asked = job.request
        return self.limits.buckets(
            queue=asked.queue, type=asked.type, repo=asked.repo, concurrency_key=asked.key
        )

    def taken(self) -> dict[str, int]:
        """Return the places taken in each bucket."""
        return dict(Counter(b for job in self.jobs if job.placed for b in self.buckets(job)))

    def full(self, job: QueuedJob) -> list[str]:
        """Return the buckets that keep a job from starting."""
        taken = self.taken()
        return [
            bucket
            for bucket in self.buckets(job)
            if self.limits.is_full(bucket, taken.get(bucket, 0), self.now)
        ]

    def hold(self, job: QueuedJob) -> str | None:
        """Return the hold of a job: the first thing that it waits for."""
        if job.status == "waiting_for_input":
            return "key" if job.key and self.holders.get(job.key) != job.number else None
        if job.status not in WAITING:
            return None
        if job.blocked:
            return "parents"
        if job.key is not None and self.holders.get(job.key) != job.number:
            return "key"
        if self.buckets(job) and not job.placed:
            return "limit"
        return "paused" if job.swept else None

    def reason(self, job: QueuedJob) -> str:
        """Return the kind of explanation that `why` gives."""
        if job.status in ENDED:
            return "ended"
        if job.status == "waiting_for_input":
            return "question"
        if job.status == "running":
            return "canceling" if job.canceling else "running"
        if job.blocked or job.status in ("scheduled", "retrying"):
            return "parents" if job.blocked else _LATER[job.status]
        if self.paused(job):
            return "paused"
        if hold := self.hold(job):
            return hold
        reserving = self.reservations.get(job.queue, job.number)
        if reserving != job.number:
            return "reserved"
        others = self.claimable(job.queue)
        first = others[0] == job.number or job.queue in self.reservations
        return "next" if first else "behind"

    # order

    def in_queue(self, queue: str) -> list[QueuedJob]:
        """Return the unfinished jobs of a queue, in the order of their positions."""
        return [job for job in self.jobs if job.queue == queue and job.status not in ENDED]

    def in_order(self, queue: str) -> list[QueuedJob]:
        """Return the queued jobs of a queue, held or not, in order."""
        queued = [job for job in self.jobs if job.queue == queue and job.status in WAITING]
        return sorted(queued, key=lambda job: -job.priority)  # stable: then by position

    def claimable(self, queue: str) -> list[int]:
        """Return the jobs of the queue that nothing holds, in order."""
        return [
            job.number
            for job in self.in_order(queue)
            if not self.paused(job) and self.hold(job) is None
        ]

    def next(self, queue: str) -> list[int]:
        """Return the jobs that a claim of the queue takes, in order."""
        claimable = self.claimable(queue)
        reserving = self.reservations.get(queue)
        return claimable if reserving is None else [n for n in claimable if n == reserving]

    def move(self, number: int, place: str, anchor: int | None) -> str | None:
        """Move a job; return why it is refused."""
        job = self.job(number)
        if job.status not in WAITING:
            return "Refused"
        if anchor is not None:
            other = self.job(anchor)
            if other.queue != job.queue or other.status not in WAITING:
                return "Refused"
        else:
            other = self.in_order(job.queue)[0 if place == "top" else -1]
        if other is job:
            return None
        self.jobs.remove(job)
        self.jobs.insert(self.jobs.index(other) + (place in ("after", "bottom")), job)
        job.priority = other.priority
        self.assign(job.key)
        self.seat()
        return None

    def prioritize(self, number: int, priority: int) -> str | None:
        """Change a priority; return why it is refused."""
        job = self.job(number)
        if job.status not in (*WAITING, "scheduled", "retrying"):
            return "Refused"
        if job.priority != priority:
            job.priority = priority
            if job.status in WAITING:
                self.assign(job.key)
                self.seat()
        return None

    # submissions, reservations and pauses

    def submit(self, requests: list[Request], numbers: list[int]) -> None:
        """Add jobs to the order and to their groups; those with parents wait."""
        new = []
        for number, request in zip(numbers, requests, strict=True):
            parents = (*request.after, *(numbers[index] for index in request.behind))
            links = [(parent, request.condition) for parent in parents]
            job = QueuedJob(number, request, request.priority, links, blocked=bool(links))
            job.blocked = job.blocked or request.group is not None
            new.append(job)
        self.arrange(new)
        self.seat()
        self.assign(*[job.key for job in new if not job.blocked])
        self.join_groups(new)
        self.link([job for job in new if job.blocked and job.parents])

    def arrange(self, new: list[QueuedJob]) -> None:
        """Put new jobs behind all others, or in turn with the other partitions of their queue."""
        taken = {job.key for job in new if job.key and not job.blocked}
        starts = {(job.queue, job.priority): self._turn_now(job, set()) for job in new}
        others = {(job.queue, job.priority): self._turn_now(job, taken) for job in new}
        for job in new:
            kind = self.limits.partition(job.queue)
            if kind is None:
                self.positions.setdefault(job.number, UNKNOWN)
                self.jobs.append(job)
                continue
            partition = job.type if kind == "type" else job.request.repo or ""
            lane = (job.queue, job.priority, partition)
            earlier = self.turns.get(lane)
            start = starts[job.queue, job.priority]
            position = self.positions.get(job.number, UNKNOWN)
            other = others[job.queue, job.priority]
            if position not in (start, UNKNOWN) and other != start and earlier is None:
                # a new job took the key of the first job before this job got its position
                start = starts[job.queue, job.priority] = other
            if start is None:
                start = starts[job.queue, job.priority] = position
                assert all(self.positions[o.number] < position for o in self.in_queue(job.queue))
            turn = start if earlier is None else max(earlier + STEP, start)
            assert position in (turn, UNKNOWN), f"D-{job.number}: {position}, not {turn}"
            self.turns[lane] = self.positions[job.number] = turn
            behind = [o for o in self.in_queue(job.queue) if self.positions[o.number] > turn]
            self.jobs.insert(self.jobs.index(behind[0]) if behind else len(self.jobs), job)

    def _turn_now(self, new: QueuedJob, taken: set[str]) -> int | None:
        """Return the position of the first job that may start, or that is next in its turn."""
        others = [o for o in self.in_queue(new.queue) if o.priority == new.priority]
        waiting = [o for o in others if o.status in WAITING and o.key not in taken]
        free = [o.number for o in waiting if self.hold(o) is None]
        running = [self.positions[o.number] for o in others if o.status == "running"]
        held = [o.number for o in waiting if self.hold(o) in {"limit", "paused"}]
        first = min((self.positions[number] for number in free or held), default=None)
        return max(running) if running and not free else first

    @abstractmethod
    def join_groups(self, new: list[QueuedJob]) -> None:
        """Add new jobs to the groups of their requests."""

    def link(self, children: list[QueuedJob]) -> None:
        """Let new jobs wait for their parents; those that wait for a key are looked at again."""
        parents = {self.job(number).number for job in children for number, _ in job.parents}
        waiting = [
            self.job(number).key for number in parents if self.hold(self.job(number)) == "key"
        ]
        self.resolve(children)
        self.assign(*waiting)

    @abstractmethod
    def resolve(self, children: Iterable[QueuedJob]) -> None:
        """Release or cancel jobs whose parents have ended."""

    def reserve(self, request: Request, number: int) -> str | None:
        """Add a job and reserve its queue; return why it is refused."""
        self.submit([request], [number])
        job = self.job(number)
        if job.queue in self.reservations or self.paused(job) or self.hold(job) is not None:
            return "Refused"
        self.reserved[job.queue] = (number, self.now + RESERVATION)
        return None

    def release(self, queue: str) -> str | None:
        """End a reservation; return why it is refused."""
        if queue not in self.reservations:
            return "Refused"
        del self.reserved[queue]
        return None

    def hold_paused(self) -> None:
        """Take places and reservations from jobs of paused queues and types that do not run."""
        for job in self.jobs:
            if job.status not in WAITING or self.hold(job) is not None:
                continue
            if self.buckets(job) and self.paused(job):
                job.placed = False
            elif job.key is None and (job.queue, job.type) in self.pauses:
                job.swept = True
            else:
                continue
            self.end_reservation(job.number)
        self.seat()

    def resume(self, queue: str, type: str | None) -> None:
        """End a pause."""
        self.pauses.discard((queue, type))
        self.release_resumed()

    def release_resumed(self) -> None:
        """Return held jobs whose type is not paused any more."""
        for job in self.jobs:
            job.swept = job.swept and (job.queue, job.type) in self.pauses
        self.seat()

    def change_limits(self, limits: Limits) -> None:
        """Replace the limits; jobs whose buckets change ask for their places again."""
        before = {job.number: self.buckets(job) for job in self.jobs}
        self.limits.replace(limits)
        for job in self.jobs:
            buckets = self.buckets(job)
            held = self.hold(job) in ("key", "parents")
            if buckets == before[job.number] or job.status in ENDED:
                continue
            job.placed = bool(buckets) and job.status == "running"
            if buckets and job.status in WAITING and not held:
                job.swept = False
        self.seat()
        self.end_waiting()

    # keys and places

    def assign(self, *keys: str | None) -> None:
        """Give each key to its first job, unless a job holds it that was claimed before."""
        for key in sorted({key for key in keys if key is not None}):
            holder = self.holders.get(key)
            waiting = [job for job in self.jobs if job.key == key and self.hold(job) == "key"]
            waiting = [job for job in waiting if job.status in WAITING]
            if not waiting:
                continue
            first = min(waiting, key=self._place)
            if holder is not None:
                job = self.job(holder)
                if job.status != "queued" or job.ran or holder in self.reservations.values():
                    continue
                if self._place(job) < self._place(first):
                    continue
                del self.holders[key]
                job.placed = job.swept = False
                self.seat()
            self.holders[key] = first.number
            self.seat()

    def seat(self) -> None:
        """Give places to the jobs that wait for them, in order."""
        for job in sorted(self.jobs, key=self._place):
            if self.hold(job) == "limit" and not self.paused(job) and not self.full(job):
                job.placed = True
                for bucket in self.buckets(job):
                    self.limits.starts[bucket].append(self.now)

    def end_waiting(self) -> None:
        """End the reservations for jobs that wait for a place."""
        for number in self.reservations.values():
            if self.hold(self.job(number)) == "limit":
                self.end_reservation(number)

    def end_reservation(self, number: int) -> None:
        """End the reservation for a job that ended, waits or is held."""
        self.reserved = {q: item for q, item in self.reserved.items() if item[0] != number}

    def _place(self, job: QueuedJob) -> tuple[int, int, int]:
        return (-job.priority, self.positions[job.number], job.number)
