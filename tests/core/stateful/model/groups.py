"""Groups of jobs in plain Python: additions, stops, cancels and retries."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.core.stateful.model.queues import ENDED, QueuedJob
from tests.core.stateful.model.workflows import WorkflowModel

GROUPS = {
    "checks": ("parallel", "stop"),
    "lints": ("parallel", "stop"),
    "builds": ("parallel", "stop"),
    "tries": ("parallel", "continue"),
    "release": ("sequential", "stop"),
    "chores": ("sequential", "continue"),
}
"""Kind and policy of each group."""


@dataclass
class Group:
    """The jobs of a group in order; each place has a job and its retries."""

    name: str
    places: list[list[int]] = field(default_factory=list)
    canceled: bool = False

    @property
    def sequential(self) -> bool:
        """Whether its jobs run one by one."""
        return GROUPS[self.name][0] == "sequential"

    @property
    def stops(self) -> bool:
        """Whether a failure stops it."""
        return GROUPS[self.name][1] == "stop"

    @property
    def everyone(self) -> set[int]:
        """All jobs, retried jobs too."""
        return {number for place in self.places for number in place}


@dataclass
class GroupModel(WorkflowModel):
    """The queues, the lives of their jobs, and groups."""

    groups: dict[str, Group] = field(default_factory=dict)

    def join_groups(self, new: list[QueuedJob]) -> None:
        """Add new jobs to their groups: they are skipped, wait for the last job, or start."""
        for name in sorted({job.request.group for job in new if job.request.group}):
            group = self.groups.setdefault(name, Group(name))
            jobs = [job for job in new if job.request.group == name]
            last = group.places[-1][-1] if group.places else None
            failures = [n for n in self._current(group) if self._failed(n)]
            stopped = bool(failures) and group.stops and not group.sequential
            if group.canceled or stopped:
                for job in jobs:
                    job.parents = []
                self._skip(jobs, None if group.canceled else min(failures))
            group.places += [[job.number] for job in jobs]  # a skipped addition stops no retry
            if group.canceled or stopped:
                continue
            if group.sequential:
                for job in jobs:
                    if last is not None and last not in dict(job.parents):
                        job.parents.append((last, "success" if group.stops else "any"))
                    last = job.number
            self.resolve([job for job in jobs if not job.parents])

    def stop_groups(self, ended: list[QueuedJob]) -> None:
        """Skip the unstarted jobs of parallel groups that stop, if one of these has failed."""
        failed = {job.number for job in ended if self._failed(job.number)}
        for group in self.groups.values():
            because = failed & group.everyone
            if because and group.stops and not group.sequential and not group.canceled:
                others = [job for job in self.jobs if job.number in group.everyone]
                waiting = [job for job in others if job.status == "queued" and not job.ran]
                if waiting:
                    self._skip(waiting, min(because))

    def replace_member(self, old: int, new: int) -> None:
        """Put a retry at the place of its job."""
        for group in self.groups.values():
            for place in group.places:
                if old in place:
                    place.append(new)

    def cancel_group(self, name: str) -> str | None:
        """Cancel a group; return why it is refused."""
        group = self.groups[name]
        members = [job for job in self.jobs if job.number in group.everyone]
        members.sort(key=lambda job: job.number)
        group.canceled |= any(job.status not in ENDED for job in members)
        return self.cancel_all(members)

    def progress(self, name: str) -> dict[str, int]:
        """Return the numbers of the jobs of a group that count, by their state."""
        statuses = [self.job(number).status for number in self._current(self.groups[name])]
        counts = {
            "succeeded": statuses.count("completed"),
            "running": statuses.count("running"),
            "failed": statuses.count("failed") + statuses.count("dead_letter"),
            "canceled": statuses.count("canceled"),
        }
        return counts | {"waiting": len(statuses) - sum(counts.values())}

    def _current(self, group: Group) -> list[int]:
        """Return the jobs that count: of each place the newest."""
        return [max(place) for place in group.places]

    def _failed(self, number: int) -> bool:
        return self.job(number).status in ENDED and self.job(number).status != "completed"

    def _skip(self, jobs: list[QueuedJob], because: int | None) -> None:
        for job in jobs:
            job.skipped = True
            job.skipped_by = because
        self.finish(jobs, "canceled")
