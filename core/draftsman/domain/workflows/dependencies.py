"""Dependencies between jobs, as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from draftsman.domain.ids import job_name
from draftsman.domain.job import Condition, Status


@dataclass(frozen=True, slots=True)
class Parent:
    """A job that another job waits or waited for, with its result."""

    number: int
    condition: Condition
    met: bool | None
    """Whether it ended as the condition says; None: it has not ended."""
    status: Status
    type: str
    title: str | None
    result: dict[str, Any] | None
    error: str | None

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return job_name(self.number)


@dataclass(frozen=True, slots=True)
class TreeJob:
    """A job in a tree, with those of its parents that are in the tree."""

    number: int
    status: Status
    type: str
    title: str | None
    invoker_id: str
    reason: str | None
    """Why it was canceled."""
    parents: list[int]

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return job_name(self.number)


@dataclass(frozen=True, slots=True)
class JobTree:
    """A job, first, and all that wait for it or that it spawned, directly or not, by number."""

    parents: list[Parent]
    """The jobs that the root waits or waited for."""
    jobs: list[TreeJob]
    total: int
    """The number of jobs, of which `jobs` has the first."""
    spawned_by: int | None
    """The job that spawned the root."""
