"""PostgreSQL sessions that a test opens and later tests use again.

A new backend costs its server 3 ms, and then reads catalogs, compiles triggers and plans for 10 ms
more. If code closes a session of a lent database, its backend is reset to the state of a new
backend and kept for the next connection with the same parameters. A backend that cannot be reset,
or that may have started with settings of its database, is closed.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, PGconn, TransactionStatus

IDLE: Final = "draftsman-tests-idle"
"""Application name of an idle backend."""
KEPT: Final = 3
"""Maximum idle backends for each set of parameters."""
KEPT_IN_ALL: Final = 10
"""Maximum idle backends of a process; the server allows a hundred to all processes."""
UNSET: Final = """
SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
WHERE datname = current_database()
"""
"""Returns rows if a database has settings, which only new backends apply."""
RESET: Final = f"""
CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *;
SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES;
SET application_name = '{IDLE}'; SELECT pg_stat_force_next_flush(); {UNSET}
""".encode()
"""`DISCARD ALL`, except the plans of triggers."""
RESUME: Final = f"RESET application_name; {UNSET}".encode()


class Sessions:
    """Backends of a pytest process, by database and parameters."""

    def __init__(self) -> None:
        self._idle: dict[str, dict[str, list[Any]]] = {}
        self._hosts: dict[str, object] = {}
        self._parameters: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()
        self._close = AsyncConnection.close
        self._closed: Any = PGconn.connect_start(b"host=/nonexistent")
        self._closed.finish()

    def install(self) -> None:
        """Reuse backends in all asynchronous connections of this process."""
        sessions = self

        def connect(
            cls: type[AsyncConnection[Any]], parameters: str = ""
        ) -> Generator[Any, Any, AsyncConnection[Any]]:
            if (backend := sessions._take(parameters)) is not None:
                conn = cls(backend)
            else:
                conn = yield from super(AsyncConnection, cls)._connect_gen(parameters)
            sessions._parameters[conn] = parameters
            return conn

        async def close(conn: AsyncConnection[Any]) -> None:
            if not conn.closed and getattr(conn, "_pool", None) is None and sessions._keep(conn):
                conn._closed = True
                conn.pgconn = sessions._closed
            else:
                await sessions._close(conn)

        AsyncConnection._connect_gen = classmethod(connect)  # type: ignore[assignment]
        AsyncConnection.close = close  # type: ignore[method-assign, assignment]

    def uninstall(self) -> None:
        """Close all idle backends, and restore the connection class."""
        del AsyncConnection._connect_gen
        AsyncConnection.close = self._close  # type: ignore[method-assign]
        for database in list(self._idle):
            self.end(database)

    def begin(self, database: str, url: str) -> None:
        """Reuse the backends of a database that are connected directly, not through a proxy."""
        self._idle[database] = {}
        self._hosts[database] = conninfo_to_dict(url).get("host")

    def end(self, database: str) -> None:
        """Close the backends of a database."""
        for waiting in self._idle.pop(database, {}).values():
            for backend in waiting:
                backend.finish()

    def _take(self, parameters: str) -> Any:
        for database, idle in self._idle.items():
            if database in parameters:
                waiting = idle.get(parameters, [])
                while waiting:
                    backend = waiting.pop()
                    if _run(backend, RESUME):
                        return backend
                    backend.finish()
        return None

    def _keep(self, conn: AsyncConnection[Any]) -> bool:
        backend: Any = conn.pgconn
        parameters = self._parameters.get(conn, "")
        wanted = conninfo_to_dict(parameters)
        database = str(wanted.get("dbname"))
        idle = self._idle.get(database)
        if idle is None or wanted.get("host") != self._hosts[database]:
            return False
        if len(waiting := idle.setdefault(parameters, [])) >= KEPT:
            return False
        if backend.transaction_status != TransactionStatus.IDLE or not _run(backend, RESET):
            return False
        while backend.notifies():
            pass
        waiting.append(backend)
        lists = [kept for known in self._idle.values() for kept in known.values() if kept]
        if sum(map(len, lists)) > KEPT_IN_ALL:
            next(kept for kept in lists if kept is not waiting).pop(0).finish()
        return True


def _run(backend: Any, statements: bytes) -> bool:
    """Run the statements; return whether all succeeded and the last returned no rows."""
    result = backend.exec_(statements)
    return bool(result.status == ExecStatus.TUPLES_OK and result.ntuples == 0)
