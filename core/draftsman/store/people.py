"""Rows of identity links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from draftsman.domain.job import Source
from draftsman.domain.people import directory as reading
from draftsman.domain.people.directory import Directory
from draftsman.store.postgres.database import Connection, execute, fetch_all, fetch_one, scalar
from draftsman.store.queries import load

_Q = load("people")


@dataclass(frozen=True, slots=True)
class IdentityLink:
    """Somebody's id in a channel, and the person that it was joined to."""

    channel: Source
    external_id: str
    display_name: str
    person: str
    linked_by: str
    linked_at: datetime


async def create_link_code(
    conn: Connection, channel: Source, id: str, name: str, code_hash: str, seconds: float
) -> None:
    """Keep the hash of a code that joins this id to a person, for so many seconds."""
    params = {"channel": channel, "id": id, "name": name, "hash": code_hash, "seconds": seconds}
    await execute(conn, _Q["create_link_code"], params)


async def link(conn: Connection, code_hash: str, person: str, actor: str) -> IdentityLink | None:
    """Use up a code; None where there is none, or its time is over."""
    params = {"hash": code_hash, "person": person, "actor": actor}
    return await fetch_one(conn, _Q["link"], params, IdentityLink)


async def unlink(conn: Connection, channel: Source, id: str) -> str | None:
    """Part an id from its person, whose name comes back; None where it had none."""
    found = await scalar(conn, _Q["unlink"], {"channel": channel, "id": id})
    return None if found is None else str(found)


async def person(conn: Connection, channel: Source, id: str) -> str | None:
    """Return the person that an id was joined to."""
    found = await scalar(conn, _Q["person"], {"channel": channel, "id": id})
    return None if found is None else str(found)


async def links(conn: Connection, limit: int) -> list[IdentityLink]:
    """Return who was joined to whom."""
    return await fetch_all(conn, _Q["links"], {"limit": limit}, IdentityLink)


async def directory(conn: Connection) -> Directory:
    """Return everybody that is known."""
    return reading.from_json(await scalar(conn, _Q["directory"]))


async def save(conn: Connection, new: Directory) -> None:
    """Replace everybody that is known."""
    await execute(conn, _Q["save"], {"directory": Jsonb(new.as_json())})
