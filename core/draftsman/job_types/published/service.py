"""Descriptions of job types, for the programs that submit their jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from draftsman.database.database import Connection, Database
from draftsman.database.recent_lookups import RecentLookups
from draftsman.errors import CommandHint, UndescribedType
from draftsman.formats.near_names import near_names
from draftsman.ids import job_name
from draftsman.job_types.published import store
from draftsman.job_types.published.description import (
    PublishedType,
    TypeDescription,
    WaitingJobs,
)
from draftsman.json_schemas.checker import SchemaChecker

AGE: Final = 1.0
"""Seconds for which descriptions are kept."""
MAX_CHECKED: Final = 500
"""Maximum number of waiting jobs of a type that are checked."""


class PublishedTypes:
    """The descriptions that workers published, and checks of payloads by them."""

    def __init__(self, db: Database, schemas: SchemaChecker, *, lease: float) -> None:
        """`lease` is that of workers, in seconds."""
        self._db = db
        self._schemas = schemas
        self._lease = lease
        self._known = RecentLookups(self._read, age=AGE)

    async def all(self) -> list[PublishedType]:
        """Return the types, by name."""
        async with self._db.connection() as conn:
            types = await store.described(conn, self._lease)
        by_name = _by_name(types)
        return sorted(
            (type for type in types if by_name[type.name] is type), key=lambda type: type.name
        )

    async def of(self, names: Collection[str]) -> dict[str, PublishedType]:
        """Return the types of names and aliases, as far as they are described.

        They are read once in AGE seconds.
        """
        return await self._known.of(names)

    async def _read(self, names: Sequence[str]) -> dict[str, PublishedType]:
        async with self._db.connection() as conn:
            return _by_name(await store.described(conn, self._lease, names))

    async def get(self, name: str) -> PublishedType:
        """Return a type; raises UndescribedType with near names."""
        found = (await self.of([name])).get(name)
        if found is None:
            near = near_names(name, [type.name for type in await self.all()])
            tail = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UndescribedType(
                f"no worker has published the type {name[:100]!r} yet{tail}",
                near=tuple(near),
                hint=CommandHint("types"),
            )
        return found

    async def waiting_jobs(self, type: PublishedType) -> WaitingJobs:
        """Check the payloads of the first jobs that wait."""
        async with self._db.connection() as conn:
            waiting = await store.waiting_payloads(conn, type, MAX_CHECKED + 1)
        checked = waiting[:MAX_CHECKED]
        read_as_is = [
            job for job in checked if not type.migrates or job.version >= type.payload_version
        ]
        unfit = {}
        if not await self._match(type, [job.payload for job in read_as_is]):
            schema = _schema(type)
            for job in read_as_is:
                if (problem := await self._schemas.problem(schema, job.payload)) is not None:
                    unfit[job_name(job.number)] = problem
        migrated = len(checked) - len(read_as_is)
        return WaitingJobs(len(checked), migrated, unfit, len(waiting) > MAX_CHECKED)

    async def check(self, type: TypeDescription, payloads: Sequence[Mapping[str, Any]]) -> None:
        """Raise InvalidParameters for a payload that does not match the parameters of its type."""
        if len(payloads) > 1 and await self._match(type, payloads):
            return
        for payload in payloads:
            await self._schemas.check_parameters(
                type.parameters, payload, f"payload of {type.name}"
            )

    async def _match(self, type: TypeDescription, payloads: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether all payloads match, by a single check."""
        schema = _schema(type)
        shared = {key: schema.pop(key) for key in ("$defs",) if key in schema}
        several = {**shared, "type": "array", "items": schema}
        return await self._schemas.problem(several, payloads) is None


def _schema(type: TypeDescription) -> dict[str, Any]:
    return {"type": "object", **type.parameters}


async def publish(conn: Connection, types: Sequence[TypeDescription]) -> None:
    """Store the descriptions of the types that a worker serves."""
    await store.publish(conn, types)


def _by_name(types: Sequence[PublishedType]) -> dict[str, PublishedType]:
    """Return the type of each name and alias; of two, the one that comes later."""
    return {name: type for type in types for name in (*type.aliases, type.name)}
