"""Identity links, and people stored in the database."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from draftsman.channels import ChannelName
from draftsman.database.database import Connection, execute, fetch_all, fetch_one, scalar
from draftsman.database.named_queries import load
from draftsman.people import directory as reading
from draftsman.people.directory import Directory, IdentityLink

_Q = load(__name__)


async def create_link_code(
    conn: Connection, channel: ChannelName, id: str, name: str, code_hash: str, seconds: float
) -> None:
    """Store the hash of a code that links this identity, valid for `seconds`."""
    params = {"channel": channel, "id": id, "name": name, "hash": code_hash, "seconds": seconds}
    await execute(conn, _Q["create_link_code"], params)


async def link(conn: Connection, code_hash: str, person: str, actor: str) -> IdentityLink | None:
    """Use a code; None where it does not exist or has expired."""
    params = {"hash": code_hash, "person": person, "actor": actor}
    return await fetch_one(conn, _Q["link"], params, IdentityLink)


async def unlink(conn: Connection, channel: ChannelName, id: str) -> str | None:
    """Unlink an identity; return its person's name, None where it had none."""
    name = await scalar(conn, _Q["unlink"], {"channel": channel, "id": id})
    return None if name is None else str(name)


async def bind_account(conn: Connection, channel: ChannelName, id: str, account_id: str) -> str:
    """Bind an identity to an account unless it is bound; return the account of the identity."""
    params = {"channel": channel, "id": id, "account_id": account_id}
    return str(await scalar(conn, _Q["bind_account"], params))


async def person(conn: Connection, channel: ChannelName, id: str) -> str | None:
    """Return the person that an identity is linked to."""
    name = await scalar(conn, _Q["person"], {"channel": channel, "id": id})
    return None if name is None else str(name)


async def links(conn: Connection, limit: int) -> list[IdentityLink]:
    """Return the linked identities."""
    return await fetch_all(conn, _Q["links"], {"limit": limit}, IdentityLink)


async def directory(conn: Connection) -> Directory:
    """Return the people stored in the database."""
    return reading.from_json(await scalar(conn, _Q["directory"]))


async def save(conn: Connection, new: Directory) -> None:
    """Replace all people."""
    await execute(conn, _Q["save"], {"directory": Jsonb(new.as_json())})
