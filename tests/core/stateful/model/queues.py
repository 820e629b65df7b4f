"""The queues in plain Python: order, pauses, held jobs, concurrency keys and reservations."""

from __future__ import annotations

from dataclasses import dataclass, field

WAITING = ("queued", "resumed")
ENDED = ("completed", "failed", "canceled")


@dataclass
class QueuedJob:
    """A job as the order and the claim see it."""

    number: int
    queue: str
    type: str
    priority: int
    key: str | None
    on_lost: str
    status: str = "queued"
    ran: bool = False
    worker: int | None = None


@dataclass
class QueueModel:
    """All jobs, in the order of their positions."""

    jobs: list[QueuedJob] = field(default_factory=list)
    pauses: set[tuple[str, str | None]] = field(default_factory=set)
    holders: dict[str, int] = field(default_factory=dict)
    """The job that holds a concurrency key."""
    reservations: dict[str, int] = field(default_factory=dict)
    """The job that a queue is reserved for."""
    submitted: int = 0

    def job(self, number: int) -> QueuedJob:
        """Return a job."""
        return next(job for job in self.jobs if job.number == number)

    def numbers(self, *statuses: str) -> list[int]:
        """Return the jobs with one of these statuses, by number."""
        return sorted(job.number for job in self.jobs if job.status in statuses)

    def in_order(self, queue: str) -> list[QueuedJob]:
        """Return the queued jobs of a queue, held or not, in order."""
        queued = [job for job in self.jobs if job.queue == queue and job.status in WAITING]
        return sorted(queued, key=lambda job: -job.priority)  # stable: then by position

    def claimable(self, queue: str) -> list[int]:
        """Return the jobs of the queue that neither a pause nor a key holds, in order."""
        if (queue, None) in self.pauses:
            return []
        return [
            job.number
            for job in self.in_order(queue)
            if (queue, job.type) not in self.pauses
            and (job.key is None or self.holders.get(job.key) == job.number)
        ]

    def next(self, queue: str) -> list[int]:
        """Return the jobs that a claim of the queue takes, in order."""
        claimable, reserving = self.claimable(queue), self.reservations.get(queue)
        return claimable if reserving is None else [n for n in claimable if n == reserving]

    def submit(self, requests: list[tuple[str, str, int, str | None, str]]) -> None:
        """Add jobs behind all others."""
        for request in requests:
            self.submitted += 1
            self.jobs.append(QueuedJob(self.submitted, *request))
        for request in requests:
            self._assign(request[3])

    def reserve(self, request: tuple[str, str, int, str | None, str]) -> str | None:
        """Add a job and reserve its queue; return why it is refused."""
        queue, type, _, key, _ = request
        self.submitted += 1
        if queue in self.reservations or self.pauses & {(queue, None), (queue, type)}:
            return "Refused"
        job = QueuedJob(self.submitted, *request)
        self.jobs.append(job)
        self._assign(key)
        if key is not None and self.holders[key] != job.number:
            self.jobs.remove(job)
            return "Refused"
        self.reservations[queue] = job.number
        return None

    def release(self, queue: str) -> str | None:
        """End a reservation; return why it is refused."""
        return None if self.reservations.pop(queue, None) else "Refused"

    def hold_paused(self) -> None:
        """End the reservations for jobs that are held with their type; a key is not given up."""
        for number in list(self.reservations.values()):
            job = self.job(number)
            if job.status in WAITING and job.key is None and (job.queue, job.type) in self.pauses:
                self._end_reservations(number)

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
        for number in started:
            job = self.job(number)
            job.status, job.ran, job.worker = "running", True, worker
        return started

    def become(self, number: int, status: str) -> None:
        """Change a status; the end of a job frees its key."""
        job = self.job(number)
        job.status, job.worker = status, None
        if status in ENDED:
            if job.key is not None and self.holders.get(job.key) == number:
                del self.holders[job.key]
            self._assign(job.key)
            self._end_reservations(number)

    def crash(self, worker: int) -> None:
        """Rescue the runs of a worker."""
        for job in [job for job in self.jobs if job.worker == worker]:
            self.become(job.number, {"resume": "resumed", "fail": "failed"}[job.on_lost])

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
        self._assign(job.key)
        return None

    def prioritize(self, number: int, priority: int) -> str | None:
        """Change a priority; return why it is refused."""
        job = self.job(number)
        if job.status not in WAITING:
            return "Refused"
        job.priority = priority
        self._assign(job.key)
        return None

    def _assign(self, key: str | None) -> None:
        """Give a key to the first queued job, unless a job holds it that was claimed before."""
        if key is None:
            return
        holder = self.holders.get(key)
        if holder is not None and (
            self.job(holder).status != "queued"
            or self.job(holder).ran
            or holder in self.reservations.values()
        ):
            return
        queued = [job for job in self.jobs if job.key == key and job.status == "queued"]
        if queued:
            first = min(queued, key=lambda job: (-job.priority, self.jobs.index(job)))
            self.holders[key] = first.number

    def _end_reservations(self, number: int | None) -> None:
        """End the reservation for a job that ended or is held."""
        self.reservations = {
            queue: job for queue, job in self.reservations.items() if job != number
        }
