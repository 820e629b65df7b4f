"""Jobs that wait for other jobs, and job groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job import Condition, GroupKind, OnFailure
from draftsman.jobs.runs.run import Lease
from draftsman.workflows.dependencies import JobTree, Parent, SpawnChange, TreeJob, Wait, find_cycle
from draftsman.workflows.groups import GroupMember, JobGroup

_Q = load(__name__)


class Link(NamedTuple):
    """A new job, a parent that it waits for, and how that has to end."""

    job: int
    parent: int
    condition: Condition


class SpawnConflicts(NamedTuple):
    """The jobs that a new job of a run may conflict with."""

    number: int | None
    """The job that was spawned under the same key."""
    digest: str | None
    """The digest of its request."""
    type: str | None
    payload: dict[str, Any] | None
    key_holder: int | None
    """The spawning job, directly or not, that has the same concurrency key."""


async def spawn_change(conn: Connection, job: int, key: str) -> SpawnChange | None:
    """Return the last other request that a job made with the key of a spawned job."""
    found = await rows(conn, _Q["spawn_change"], {"job": job, "key": key})
    return SpawnChange(*found[0]) if found else None


async def link(conn: Connection, links: Sequence[Link]) -> set[int]:
    """Let new jobs wait for their parents; return those that were canceled at once."""
    jobs, parents, conditions = zip(*links, strict=True)
    params = {"jobs": [*jobs], "parents": [*parents], "conditions": [*map(str, conditions)]}
    return {number for (number,) in await rows(conn, _Q["link"], params)}


async def parents(conn: Connection, job: int) -> list[Parent]:
    """Return the parents of a job with their results, in the order of its request."""
    return await fetch_all(conn, _Q["parents"], {"job": job}, Parent)


async def spawned(conn: Connection, job: int, jobs: Sequence[int]) -> list[Parent]:
    """Return those of the jobs that a job spawned."""
    return await fetch_all(conn, _Q["spawned"], {"job": job, "jobs": [*jobs]}, Parent)


async def spawn_conflicts(
    conn: Connection, job: int, key: str, concurrency_key: str | None
) -> SpawnConflicts:
    """Return the jobs that a new job of a run may conflict with."""
    params = {"job": job, "key": key, "concurrency_key": concurrency_key}
    (record,) = await rows(conn, _Q["spawn_conflicts"], params)
    return SpawnConflicts(*record)


async def completed_spawn(conn: Connection, job: int, key: str, digest: str) -> int | None:
    """Return the completed job that the job which a job retries spawned under a key.

    Its request has this digest.
    """
    params = {"job": job, "key": key, "digest": digest}
    number: int | None = await scalar(conn, _Q["completed_spawn"], params)
    return number


async def record_spawn(conn: Connection, lease: Lease, job: int) -> None:
    """Record a job that a run spawned."""
    params = {"job": lease.job, "token": lease.token, "spawned": job}
    await execute(conn, _Q["record_spawn"], params)


async def await_jobs(conn: Connection, lease: Lease, jobs: Sequence[int]) -> int | None:
    """Let a job wait for jobs that it spawned; return how many have not ended.

    Return None after a lost lease.
    """
    params = {"job": lease.job, "token": lease.token, "spawned": [*jobs]}
    unfinished: int | None = await scalar(conn, _Q["await_jobs"], params)
    return unfinished


async def wait_cycle(conn: Connection, job: int) -> tuple[bool, list[Wait]]:
    """Return whether a job waits for a concurrency key, and the cycle in which it waits for itself.

    A job may wait directly or not; the cycle begins with the job, and is empty if there is none.
    """
    (record,) = await rows(conn, _Q["wait_cycle"], {"job": job})
    return record[0], find_cycle(job, [Wait(*wait) for wait in record[1]])


async def lock_waits(conn: Connection) -> None:
    """Wait for the other transactions in which a job begins to wait for a concurrency key."""
    await execute(conn, _Q["lock_waits"])


async def skipped(conn: Connection, job: int) -> Sequence[tuple[int, int | None, Condition]]:
    """Return the jobs that were skipped because of a job, with each parent, the oldest first.

    A job of a group may have no parent.
    """
    return [
        (number, parent, Condition(condition))
        for number, parent, condition in await rows(conn, _Q["skipped"], {"job": job})
    ]


async def tree(conn: Connection, job: int, limit: int) -> JobTree:
    """Return the first jobs of a tree; none if the job does not exist."""
    jobs, total = await tree_jobs(conn, job, limit)
    return JobTree(await parents(conn, job), jobs, total, await spawner(conn, job))


async def tree_jobs(conn: Connection, job: int, limit: int) -> tuple[list[TreeJob], int]:
    """Return the first jobs of a tree, and how many it has."""
    jobs = await fetch_all(conn, _Q["tree_jobs"], {"job": job, "limit": limit}, TreeJob)
    return jobs, await tree_size(conn, job) if len(jobs) == limit else len(jobs)


async def causes(conn: Connection, job: int) -> list[int]:
    """Return the parents, or the job of its group, because of which a job was skipped."""
    return [number for (number,) in await rows(conn, _Q["causes"], {"job": job})]


async def spawner(conn: Connection, job: int) -> int | None:
    """Return the job that spawned a job."""
    number: int | None = await scalar(conn, _Q["spawner"], {"job": job})
    return number


async def tree_size(conn: Connection, job: int) -> int:
    """Return the number of jobs in a tree."""
    return int(await scalar(conn, _Q["tree_size"], {"job": job}))


async def waiting_count(conn: Connection, job: int) -> int:
    """Return how many jobs wait or waited for a job, without those that it spawned."""
    return int(await scalar(conn, _Q["waiting_count"], {"job": job}))


async def tree_invokers(conn: Connection, job: int) -> list[str]:
    """Return the people who submitted the unfinished jobs of the tree."""
    return [invoker for (invoker,) in await rows(conn, _Q["tree_invokers"], {"job": job})]


async def cancel_tree(
    conn: Connection, job: int, by: str, reason: str | None
) -> Sequence[tuple[int, bool]]:
    """Cancel a tree; return each job, and whether its worker stops it first."""
    params = {"job": job, "by": by, "reason": reason}
    return [(n, requested) for n, requested in await rows(conn, _Q["cancel_tree"], params)]


# Job groups and their members.


class OpenGroup(NamedTuple):
    """A locked group."""

    id: int
    kind: GroupKind
    on_failure: OnFailure


class NewMember(NamedTuple):
    """A new job of a group, and the job that it waits for in a sequential group."""

    job: int
    parent: int | None
    skipped: bool


async def open_group(
    conn: Connection, name: str, kind: str | None, on_failure: str | None, actor: str
) -> OpenGroup | None:
    """Lock a group, creating it with a kind; None: it does not exist."""
    params = {"name": name, "kind": kind, "on_failure": on_failure, "actor": actor}
    for id, stored, on in await rows(conn, _Q["open_group"], params):
        return OpenGroup(id, GroupKind(stored), OnFailure(on))
    return None


async def add_members(
    conn: Connection,
    group: int,
    jobs: Sequence[int],
    linked: Sequence[int],
    *,
    is_operator: bool = False,
) -> list[NewMember]:
    """Add new jobs to a locked group; `linked` jobs also wait for parents of their request.

    Only an operator, as the programs of the owner of the schema know, and the creator add jobs to
    a group that has jobs of others. Raises Refused.
    """
    params = {
        "group": group,
        "jobs": [*jobs],
        "linked": [*linked],
        "is_operator": is_operator,
    }
    return [NewMember(*row) for row in await rows(conn, _Q["add_members"], params)]


async def inherit_group(conn: Connection, old: int, new: int) -> None:
    """Put a new retry in the group of its job, if that has one."""
    await execute(conn, _Q["inherit_group"], {"old": old, "new": new})


async def cancel_group(
    conn: Connection, group: int, actor: str, reason: str | None
) -> Sequence[tuple[int, bool]]:
    """Cancel a group; return each unfinished job, and whether its worker stops it first."""
    params = {"group": group, "actor": actor, "reason": reason}
    return [(n, requested) for n, requested in await rows(conn, _Q["cancel_group"], params)]


async def groups(
    conn: Connection, limit: int, *, name: str | None = None, job: int | None = None
) -> list[JobGroup]:
    """Return groups, newest first, or the group of a name or of a job."""
    params = {"limit": limit, "name": name, "job": job}
    return await fetch_all(conn, _Q["groups"], params, JobGroup)


async def members(conn: Connection, group: int, after: int, limit: int) -> list[GroupMember]:
    """Return the jobs of a group that count, in order, after an ordinal."""
    params = {"group": group, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["members"], params, GroupMember)


async def numbers(conn: Connection, name: str, before: int, limit: int) -> list[int]:
    """Return the numbers of the jobs of a group, retried jobs too, newest first."""
    params = {"name": name, "before": before, "limit": limit}
    return [number for (number,) in await rows(conn, _Q["numbers"], params)]
