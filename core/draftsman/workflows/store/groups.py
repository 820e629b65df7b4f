"""Job groups and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from draftsman.database.database import Connection, execute, fetch_all, rows
from draftsman.database.named_queries import load
from draftsman.jobs.job import GroupKind, OnFailure
from draftsman.workflows.groups import GroupMember, JobGroup

_Q = load("groups")


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


async def add(
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
    return [NewMember(*row) for row in await rows(conn, _Q["add"], params)]


async def inherit(conn: Connection, old: int, new: int) -> None:
    """Put a new retry in the group of its job, if that has one."""
    await execute(conn, _Q["inherit"], {"old": old, "new": new})


async def cancel(
    conn: Connection, group: int, actor: str, reason: str | None
) -> Sequence[tuple[int, bool]]:
    """Cancel a group; return each unfinished job, and whether its worker stops it first."""
    params = {"group": group, "actor": actor, "reason": reason}
    return [(n, requested) for n, requested in await rows(conn, _Q["cancel"], params)]


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
