"""Faults of a PostgreSQL server: sessions that are cut, read-only, refused or left open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import psycopg

from draftsman.database.embedded import EmbeddedServer
from draftsman.errors import DatabaseUnreachable
from draftsman_soak.ledger import retry_until_reachable

CONNECT_TIMEOUT: Final = 5
"""Seconds to wait for a connection."""
CUT: Final = Path(__file__).with_name("cut.sql")
SHIFT: Final = Path(__file__).with_name("shift_clock.sql")
READ_ONLY: Final = Path(__file__).with_name("read_only.sql")
WRITABLE: Final = Path(__file__).with_name("writable.sql")
REFUSE_ENDS: Final = Path(__file__).with_name("refuse_ends.sql")
REFUSE_END: Final = Path(__file__).with_name("refuse_end.sql")
ACCEPT_ENDS: Final = Path(__file__).with_name("accept_ends.sql")
PROGRESS: Final = Path(__file__).with_name("progress.sql")
Transaction = psycopg.AsyncConnection[tuple[object, ...]]


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


def make_read_only(server: EmbeddedServer) -> None:
    """Make new sessions read-only; open sessions stay as they are. Raises DatabaseUnreachable."""
    _ask(server.url("postgres"), READ_ONLY)


def make_writable(server: EmbeddedServer) -> None:
    """Let new sessions write again; open sessions stay read-only. Raises DatabaseUnreachable."""
    _ask(server.url("postgres"), WRITABLE)


def prepare_refusals(server: EmbeddedServer) -> None:
    """Install the trigger that refuses the end of runs. Raises DatabaseUnreachable."""
    _ask(server.url(), REFUSE_ENDS)


def refuse_end(server: EmbeddedServer) -> int | None:
    """Refuse the end of an active run until `accept_ends`; return its job, None if none runs.

    Raises DatabaseUnreachable.
    """
    job = _ask(server.url(), REFUSE_END)
    return None if job is None else int(str(job))


def accept_ends(server: EmbeddedServer) -> None:
    """Accept the end of every run again. Raises DatabaseUnreachable."""
    _ask(server.url(), ACCEPT_ENDS)


@asynccontextmanager
async def open_transaction(server: EmbeddedServer) -> AsyncIterator[Transaction]:
    """Give a transaction of a client, which the caller commits; else it is rolled back.

    Raises DatabaseUnreachable.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(
            server.url(), connect_timeout=CONNECT_TIMEOUT
        )
        try:
            yield connection
        finally:
            with contextlib.suppress(psycopg.Error):
                await connection.rollback()
            await connection.close()
    except psycopg.Error as error:
        raise _unreachable(error) from error


async def stall(
    connection: Transaction, seconds: float, able_workers: Callable[[], Awaitable[Set[UUID]]]
) -> float | None:
    """Leave a transaction open; return for how long no run started or ended, None if one did.

    Also None if no worker was able to run jobs for the whole time, because of other faults.
    Raises psycopg.Error if it is broken.
    """

    async def progress() -> object:
        return await (await connection.execute(PROGRESS.read_bytes())).fetchone()

    able = await able_workers()
    before = await progress()
    began = time.monotonic()
    await asyncio.sleep(seconds)
    if await progress() != before or not able & await able_workers():
        return None
    return time.monotonic() - began


def _unreachable(error: psycopg.Error) -> DatabaseUnreachable:
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    return DatabaseUnreachable(f"cannot connect to the database: {reason}")


def _ask(url: str, query: Path | str, params: dict[str, object] | None = None) -> object:
    """Run a statement; return the first value, or None if there is no row."""
    statement = (query.read_text() if isinstance(query, Path) else query).encode()
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT) as connection:
            cursor = connection.execute(statement, params)
            row = cursor.fetchone() if cursor.description else None
    except psycopg.Error as error:
        raise _unreachable(error) from error
    return row[0] if row else None


# Clock of the test database, shifted forward and back.


@dataclass(slots=True)
class DatabaseClock:
    """The current and the largest offset of new sessions from the machine's clock, in seconds."""

    server: EmbeddedServer
    offset: float = 0.0
    max_offset: float = 0.0

    async def set(self, seconds: float) -> None:
        """Set the offset for new sessions; open sessions keep theirs."""
        await retry_until_reachable(lambda: asyncio.to_thread(shift_clock, self.server, seconds))
        self.offset = seconds
        self.max_offset = max(self.max_offset, seconds)

    async def apply_to_all(self) -> None:
        """End every session, so that all sessions have the same clock."""
        await retry_until_reachable(lambda: asyncio.to_thread(cut_connections, self.server))

    async def shift(self, seconds: float) -> None:
        """Advance the clock of all sessions beyond every time in the database."""
        await self.set(max(self.max_offset, self.offset + seconds))
        await self.apply_to_all()
