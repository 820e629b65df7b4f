"""Jobs in plain Python that runs spawn and gather, without a slot meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.core.stateful.model.groups import GroupModel
from tests.core.stateful.model.queues import ENDED, QueuedJob, Request

LONGEST_WAIT = 86_400.0 * 366
"""Seconds after which a job that gathers others looks again."""


@dataclass
class FanOutModel(GroupModel):
    """The queues, workflows and groups, and the jobs that others spawn."""

    spawned: dict[int, dict[str, int]] = field(default_factory=dict)
    """The jobs that a job has spawned, by their keys."""
    gathered: dict[int, set[int]] = field(default_factory=dict)
    """The unfinished jobs that a job has gathered."""

    def spawn(self, number: int, key: str, request: Request, new: list[int]) -> int | str:
        """Return the number of a spawned job, old or new; or why it is refused."""
        children = self.spawned.get(number, {})
        if request.key is not None and request.key in self._keys_above(number):
            return "UsageError"
        if key not in children:
            done = self._completed(number, key, request)
            self.spawned.setdefault(number, {})[key] = done or new[0]
            if done is None:
                self.submit([request], new)
            return done or new[0]
        return children[key] if self._is_same(children[key], request) else "OtherSpawn"

    def gather(self, number: int, children: list[int]) -> list[tuple[int, str]] | None:
        """Return the ends of the children; None if the run was parked for them."""
        unfinished = {child for child in children if self.job(child).status not in ENDED}
        if not unfinished:
            return [(child, self.job(child).status) for child in children]
        self.gathered[number] = self.gathered.get(number, set()) | unfinished
        self.end(number, "scheduled", LONGEST_WAIT)
        return None

    def awaited(self, ended: set[int]) -> list[QueuedJob]:
        """Return the parked jobs of which these were the last that they wait for."""
        woken = []
        for number, children in self.gathered.items():
            job = self.job(number)
            left = children - ended
            if children and not left and job.status == "scheduled":
                woken.append(job)
            self.gathered[number] = left
        return woken

    def reason(self, job: QueuedJob) -> str:
        """Return the kind of explanation that `why` gives."""
        return "parents" if self._is_parked(job) else super().reason(job)

    def below(self, tree: set[int]) -> set[int]:
        """Return the jobs that wait for these jobs, or that these have spawned."""
        spawned = {child for number in tree for child in self.spawned.get(number, {}).values()}
        return super().below(tree) | spawned

    def sleeping(self) -> Iterable[QueuedJob]:
        """Return the jobs that a time wakes up."""
        return [job for job in super().sleeping() if not self._is_parked(job)]

    def _is_parked(self, job: QueuedJob) -> bool:
        return job.status == "scheduled" and bool(self.gathered.get(job.number))

    def _is_same(self, number: int, request: Request) -> bool:
        before = self.job(number).request
        return (before.type, before.repo) == (request.type, request.repo)

    def _completed(self, number: int, key: str, request: Request) -> int | None:
        """Return the completed job that a retried job has spawned under a key."""
        old = self.job(number).retry_of
        while old is not None:
            child = self.spawned.get(old, {}).get(key)
            if child is not None and self.job(child).status == "completed":
                return child if self._is_same(child, request) else None
            old = self.job(old).retry_of
        return None

    def _keys_above(self, number: int | None) -> set[str | None]:
        """Return the keys of a job and of the unfinished jobs that spawned it."""
        spawners = {
            child: parent
            for parent, jobs in self.spawned.items()
            for child in jobs.values()
            if parent < child  # not a retry that has taken it over
        }
        keys = set()
        while number is not None:
            if self.job(number).status not in ENDED:
                keys.add(self.job(number).key)
            number = spawners.get(number)
        return keys
