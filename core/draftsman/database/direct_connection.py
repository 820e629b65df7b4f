"""Direct connections to a server, and how they differ from those to a transaction pooler.

A pooler refuses start-up options, or ignores them, because its sessions with the server are those
of any client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import psycopg

from draftsman.database.database_connection import DatabaseConnection
from draftsman.database.named_queries import load
from draftsman.database.session_settings import conninfo
from draftsman.errors import CommandHint, ConfigError

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext

_Q = load("draftsman.database.schema")
_REFUSAL: Final = "startup parameter"
"""Words of the error with which PgBouncer refuses `options`, which has no code of its own."""
NEEDS_SESSION: Final = (
    "the database URL leads to a transaction pooler, and this needs a session of the server: set"
    " listen_url (DRAFTSMAN_LISTEN_URL) to the server itself"
)
_PAGE: Final = CommandHint("help --page", "connections#transaction-poolers")


async def connect(
    parameters: str,
    kind: type[DatabaseConnection] = DatabaseConnection,
    context: AdaptContext | None = None,
) -> DatabaseConnection:
    """Open an autocommit connection."""
    return await kind.connect(parameters, autocommit=True, context=context)


async def connect_direct(
    url: str,
    settings: Mapping[str, str],
    *,
    connect_timeout: float,
    pinned: bool = False,
    context: AdaptContext | None = None,
) -> DatabaseConnection:
    """Open a session of the server with these settings, which include the mark.

    Raises ConfigError if the URL leads to a transaction pooler.
    """
    kind: type[DatabaseConnection] = DatabaseConnection
    if pinned:
        from draftsman.database.pinned_connection import PinnedConnection

        kind = PinnedConnection
    try:
        conn = await connect(conninfo(url, settings, connect_timeout), kind, context)
    except psycopg.OperationalError as error:
        if refuses_options(error):
            raise ConfigError(NEEDS_SESSION, hint=_PAGE) from None
        raise
    try:
        if not await has_start_up_options(conn):
            raise ConfigError(NEEDS_SESSION, hint=_PAGE)
    except BaseException:
        await conn.close()
        raise
    return conn


def refuses_options(error: psycopg.OperationalError) -> bool:
    """Return whether a connection failed because a pooler refuses start-up options."""
    return _REFUSAL in str(error)


async def has_start_up_options(conn: psycopg.AsyncConnection[Any]) -> bool:
    """Return whether the server got the start-up options of a connection."""
    cursor = await conn.execute(_Q["has_start_up_options"])
    return (await cursor.fetchone() or (False,))[0]
