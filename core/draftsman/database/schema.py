"""Applied migrations, group roles and the epoch of the event feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, LiteralString

from psycopg import errors, sql

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.server_health import OldestSnapshot
from draftsman.database.session_settings import OF_SESSIONS, PINNED

if TYPE_CHECKING:
    from draftsman.database.migration_files import Source

_Q = load(__name__)


async def lock(conn: Connection) -> None:
    """Acquire the migration lock, which ends with the session."""
    await execute(conn, _Q["lock"])


async def applied(conn: Connection) -> dict[str, tuple[str | None, datetime]]:
    """Return (checksum, time) of the applied migrations, by name."""
    try:
        return {name: (checksum, at) for name, checksum, at in await rows(conn, _Q["applied"])}
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return {}


async def applied_functions(conn: Connection) -> dict[str, tuple[str | None, datetime]]:
    """Return (checksum, time) of the files of functions as they are now, by name."""
    try:
        records = await rows(conn, _Q["applied_functions"])
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return {}
    return {name: (checksum, at) for name, checksum, at in records}


async def is_writable(conn: Connection) -> bool:
    """Return whether the session takes writes."""
    return bool(await scalar(conn, _Q["is_writable"]))


async def limit_lock_waits(conn: Connection, seconds: float) -> None:
    """Let the statements of this transaction wait at most so long for each lock."""
    await execute(conn, _Q["lock_timeout"], {"timeout": f"{round(seconds * 1000)}ms"})


async def run_file(conn: Connection, sql: str) -> None:
    """Run the statements of a file."""
    await conn.execute(sql.encode())


async def record(conn: Connection, name: str, checksum: str) -> None:
    """Add the checksum of a numbered file, which recorded itself."""
    await execute(conn, _Q["record"], {"name": name, "checksum": checksum})


async def record_functions(conn: Connection, name: str, checksum: str, objects: list[str]) -> None:
    """Add the checksum and the objects of a file of functions, which recorded itself."""
    params = {"name": name, "checksum": checksum, "objects": objects}
    await execute(conn, _Q["record_functions"], params)


async def lost_functions(conn: Connection, names: list[str]) -> set[str]:
    """Return those of these files of functions that define an object which is gone."""
    return {row[0] for row in await rows(conn, _Q["lost_functions"], {"names": names})}


async def drop_vanished(
    conn: Connection, defined: list[str], names: list[str], channels: list[str]
) -> list[str]:
    """Drop the objects that files of functions have defined and none defines now.

    `defined` are the objects of all files, `names` the files of the packages of these channels,
    whose objects are dropped. Returns the statements.
    """
    params = {"defined": defined, "channels": channels}
    dropped = [row[0] for row in await rows(conn, _Q["drop_vanished"], params)]
    for statement in dropped:
        await conn.execute(statement.encode())
    await execute(conn, _Q["forget_functions"], {"names": names, "channels": channels})
    return dropped


async def packages(conn: Connection) -> list[tuple[str, str, str]]:
    """Return the channel, package and version of each package that was migrated."""
    try:
        return [(row[0], row[1], row[2]) for row in await rows(conn, _Q["packages"])]
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return []


async def record_versions(conn: Connection, sources: Sequence[Source]) -> None:
    """Record the versions of these packages, as those that migrated last."""
    await execute(conn, _Q["record_versions"], _versions(sources))


def _versions(sources: Sequence[Source]) -> dict[str, list[str]]:
    return {
        "channels": [source.channel for source in sources],
        "packages": [source.package for source in sources],
        "versions": [source.version for source in sources],
    }


def finishing_script(
    files: list[tuple[str, str, list[str]]],
    defined: list[str],
    channels: list[str],
    sources: Sequence[Source],
) -> str:
    """Return the statements that follow the files: drops of vanished objects, records, rights.

    `files` are (name, checksum, objects) of the applied files of functions, `channels` those whose
    packages are installed, with "" for draftsman itself.
    """
    drop = (
        "DO $drop$ DECLARE statement text; BEGIN FOR statement IN\n"
        f"{_filled(_Q['drop_vanished'], defined=defined, channels=channels)}\n"
        "LOOP EXECUTE statement; END LOOP; END $drop$;"
    )
    statements = [drop]
    statements += [
        f"{_filled(_Q['record_functions'], name=name, checksum=checksum, objects=objects)};"
        for name, checksum, objects in files
    ]
    statements.append(f"{_filled(_Q['record_versions'], **_versions(sources))};")
    return "\n".join([*statements, f"{_Q['grant_roles']};"])


def _filled(query: LiteralString, **params: object) -> str:
    """Return a statement with its values as literals."""
    text: str = query
    for name, value in params.items():
        text = text.replace(f"%({name})s", sql.Literal(value).as_string(None))
    return text.replace("%%", "%").rstrip()


async def lock_holders(conn: Connection) -> list[str]:
    """Return the sessions that have held locks on draftsman's tables for longest."""
    return [
        f"pid {pid} ({name}, {state}) since {since}"
        for pid, name, state, since in await rows(conn, _Q["lock_holders"])
    ]


async def grant_roles(conn: Connection) -> str:
    """Grant the rights of the group roles; return the SQL that an administrator must run first."""
    return str(await scalar(conn, _Q["grant_roles"]))


async def new_epoch(conn: Connection) -> int:
    """Start a new epoch of the event feed."""
    return int(await scalar(conn, _Q["new_epoch"]))


async def oldest_snapshot(conn: Connection) -> OldestSnapshot | None:
    """Return the oldest transaction of another session that has a snapshot, if one is open."""
    found = await fetch_all(conn, _Q["oldest_snapshot"], None, OldestSnapshot)
    return found[0] if found else None


async def foreign_settings(conn: Connection) -> list[str]:
    """Return the settings of the database and the role that apply to draftsman's sessions."""
    pinned = [*PINNED, *OF_SESSIONS, "client_encoding", "statement_timeout"]
    return [row[0] for row in await rows(conn, _Q["foreign_settings"], {"pinned": pinned})]
