"""Applied migrations, group roles and the epoch of the event feed."""

from __future__ import annotations

from datetime import datetime
from typing import LiteralString

from psycopg import errors, sql

from draftsman.database.database import Connection, execute, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.session_settings import OF_SESSIONS, PINNED

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


async def drop_vanished(conn: Connection, defined: list[str], names: list[str]) -> list[str]:
    """Drop the objects that files of functions have defined and none defines now.

    `defined` are the objects of all files, `names` the files. Returns the statements.
    """
    dropped = [row[0] for row in await rows(conn, _Q["drop_vanished"], {"defined": defined})]
    for statement in dropped:
        await conn.execute(statement.encode())
    await execute(conn, _Q["forget_functions"], {"names": names})
    return dropped


def finishing_script(files: list[tuple[str, str, list[str]]], defined: list[str]) -> str:
    """Return the statements that follow the files: drops of vanished objects, records, rights.

    `files` are (name, checksum, objects) of the applied files of functions.
    """
    drop = (
        "DO $drop$ DECLARE statement text; BEGIN FOR statement IN\n"
        f"{_filled(_Q['drop_vanished'], defined=defined)}\n"
        "LOOP EXECUTE statement; END LOOP; END $drop$;"
    )
    statements = [drop]
    statements += [
        f"{_filled(_Q['record_functions'], name=name, checksum=checksum, objects=objects)};"
        for name, checksum, objects in files
    ]
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


async def foreign_settings(conn: Connection) -> list[str]:
    """Return the settings of the database and the role that apply to draftsman's sessions."""
    pinned = [*PINNED, *OF_SESSIONS, "client_encoding", "statement_timeout"]
    return [row[0] for row in await rows(conn, _Q["foreign_settings"], {"pinned": pinned})]
