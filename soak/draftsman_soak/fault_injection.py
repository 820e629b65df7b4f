"""Faults of a PostgreSQL server: cut connections and a shifted clock."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psycopg

from draftsman.embedded import EmbeddedServer
from draftsman.errors import DatabaseUnreachable

CONNECT_TIMEOUT: Final = 5
"""Seconds to wait for a connection."""
CUT: Final = Path(__file__).with_name("cut.sql")
SHIFT: Final = Path(__file__).with_name("shift_clock.sql")


def cut_connections(server: EmbeddedServer, share: float = 1.0) -> int:
    """End about `share` of the client connections; return how many.

    Raises DatabaseUnreachable.
    """
    return int(str(_ask(server.url("postgres"), CUT, {"share": share})))


def shift_clock(server: EmbeddedServer, seconds: float) -> None:
    """Set the clock of new sessions `seconds` ahead of the machine, or behind where negative.

    Open sessions keep their clock. Raises DatabaseUnreachable.
    """
    url = server.url("postgres")
    statement = str(_ask(url, SHIFT, {"offset": f"{seconds} seconds"}))
    _ask(url, statement)


def _ask(url: str, query: Path | str, params: dict[str, object] | None = None) -> object:
    """Run a statement; return the first value, or None if there is no row."""
    statement = (query.read_text() if isinstance(query, Path) else query).encode()
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT) as connection:
            cursor = connection.execute(statement, params)
            row = cursor.fetchone() if cursor.description else None
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DatabaseUnreachable(f"cannot connect to the database: {reason}") from error
    return row[0] if row else None
