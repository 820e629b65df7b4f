"""What can go wrong with a server, done to it on purpose. `draftsman soak` is who does it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psycopg

from draftsman.errors import DatabaseUnreachable

CONNECT_TIMEOUT: Final = 5
"""Seconds to wait for a connection."""
CUT: Final = Path(__file__).with_name("cut.sql")
SHIFT: Final = Path(__file__).with_name("shift_clock.sql")


def cut_connections(url: str, share: float = 1.0) -> int:
    """End about this share of the clients' connections; return how many.

    `url` is that of the server's database `postgres`. Raises DatabaseUnreachable.
    """
    return int(str(_ask(url, CUT, {"share": share})))


def shift_clock(url: str, seconds: float) -> None:
    """Put the database's clock on, or back, by so much against the machine's.

    Sessions that there are keep the clock that they have. Raises DatabaseUnreachable.
    """
    statement = str(_ask(url, SHIFT, {"offset": f"{seconds} seconds"}))
    _ask(url, statement)


def _ask(url: str, query: Path | str, params: dict[str, object] | None = None) -> object:
    """Run one statement; return the first value, or None where there is no row."""
    statement = (query.read_text() if isinstance(query, Path) else query).encode()
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT) as connection:
            cursor = connection.execute(statement, params)
            row = cursor.fetchone() if cursor.description else None
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DatabaseUnreachable(f"the database cannot be reached: {reason}") from error
    return row[0] if row else None
