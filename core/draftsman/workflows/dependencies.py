"""Dependencies between jobs, as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from draftsman.ids import job_name
from draftsman.jobs.job import Condition, Status
from draftsman.text import STORED_SENTENCE, humanize


class SpawnChange(NamedTuple):
    """Another request that came with the key of a spawned job, in a run."""

    run: int
    content: str
    digest: str


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
    error: str | None = field(metadata=STORED_SENTENCE)

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
    reason: str | None = field(metadata=STORED_SENTENCE)
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


class Wait(NamedTuple):
    """A job that waits for another: for its end, or for its concurrency key `key`."""

    job: int
    waits_for: int
    key: str | None


def find_cycle(job: int, waits: Iterable[Wait]) -> list[Wait]:
    """Return a shortest cycle in which a job waits for itself, from that job; empty: none."""
    following: dict[int, list[Wait]] = {}
    for wait in waits:
        following.setdefault(wait.job, []).append(wait)
    paths: list[list[Wait]] = [[wait] for wait in following.pop(job, [])]
    for path in paths:
        if path[-1].waits_for == job:
            return path
        paths += [[*path, wait] for wait in following.pop(path[-1].waits_for, [])]
    return []


def cycle_text(cycle: Sequence[Wait]) -> str:
    """Return what each job of a cycle waits for, in a sentence without its beginning."""
    return ", which waits for ".join(
        f"{job_name(wait.waits_for)}"
        if wait.key is None
        else f"the concurrency key {wait.key!r} of {job_name(wait.waits_for)}"
        for wait in cycle
    )


def parents_text(parents: Sequence[tuple[int, str]], count: int | None = None) -> str:
    """List the parents that a job waits for: `D-6 (running), 2 more`; there are `count`.

    Without the number, there may be more than the first three.
    """
    shown = parents if count is not None else parents[:3]
    names = [f"{job_name(number)} ({humanize(status)})" for number, status in shown]
    if count is None and len(parents) > len(shown):
        names.append("more")
    elif count is not None and count > len(shown):
        names.append(f"{count - len(shown):,} more")
    return ", ".join(names)
