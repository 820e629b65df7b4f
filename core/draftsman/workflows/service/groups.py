"""Job groups: lists, progress and members."""

from __future__ import annotations

from draftsman.database.database import Connection, Database
from draftsman.errors import CommandHint, NotFound
from draftsman.formats.near_names import did_you_mean
from draftsman.workflows import store
from draftsman.workflows.groups import GroupMember, JobGroup

GROUPS_LIMIT = 200
"""Default number of groups in a list; an unknown name is compared with so many of the newest."""
MEMBERS_LIMIT = 1000
"""Default number of jobs of a group."""


class Groups:
    """Groups of jobs; requests with a group create and extend them."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self, limit: int = GROUPS_LIMIT) -> list[JobGroup]:
        """Return groups, newest first."""
        async with self._db.connection() as conn:
            return await store.groups(conn, limit)

    async def get(self, name: str) -> JobGroup:
        """Return a group; raises NotFound."""
        async with self._db.connection() as conn:
            return await get(conn, name)

    async def of_job(self, job: int) -> JobGroup | None:
        """Return the group of a job."""
        async with self._db.connection() as conn:
            return next(iter(await store.groups(conn, 1, job=job)), None)

    async def members(
        self, name: str, limit: int = MEMBERS_LIMIT, *, after: int = 0
    ) -> list[GroupMember]:
        """Return the jobs of a group, in order, after an ordinal; raises NotFound."""
        async with self._db.connection() as conn:
            return await store.members(conn, (await get(conn, name)).id, after, limit)


async def get(conn: Connection, name: str) -> JobGroup:
    """Return a group; raises NotFound."""
    for group in await store.groups(conn, 1, name=name):
        return group
    names = [known.name for known in await store.groups(conn, GROUPS_LIMIT)]
    near = did_you_mean(name, names)
    raise NotFound(f"there is no group {name!r}{near}", hint=CommandHint("groups"))
