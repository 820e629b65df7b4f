"""PostgreSQL sessions that a test opens and later tests use again.

A new backend costs its server 3 ms, and then reads catalogs, compiles triggers and plans for 20 ms
more. When code closes a session of a lent database, its backend is reset to its first state
and kept; the next connection with the same parameters gets it, with the settings that the database
has by then. A backend that cannot be reset, or that began under settings of its database, which
RESET would restore, is closed.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from psycopg import AsyncConnection, OperationalError
from psycopg._preparing import Prepare, PrepareManager
from psycopg._queries import PostgresQuery
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, PGconn, TransactionStatus
from psycopg.pq.abc import PGresult

from draftsman.database.pinned_connection import PinnedConnection

IDLE: Final = "draftsman-tests-idle"
"""Application name of an idle backend."""
KEPT: Final = 8
"""Maximum idle backends for each set of parameters."""
KEPT_IN_ALL: Final = 24
"""Maximum idle backends of all processes that use a server, which allows a hundred sessions."""
SETTINGS: Final = """
SELECT split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1)
FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase,
     unnest(setconfig) AS setting
WHERE datname = current_database()
"""
"""The settings that a new backend of the database has."""
RESET: Final = f"""
CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *;
SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES;
SET application_name = '{IDLE}'; SELECT pg_stat_force_next_flush()
""".encode()
"""`DISCARD ALL`, except prepared statements and the plans of triggers."""
DEALLOCATE: Final = b"DEALLOCATE ALL;"
RESUME: Final = b"RESET application_name; SELECT FROM pg_db_role_setting"
"""Returns rows if any database has settings: planning SETTINGS takes longer than all the rest."""
APPLY: Final = f"""
SELECT set_config(name, value, false) FROM ({SETTINGS}) AS settings (name, value)
 WHERE NOT EXISTS (SELECT FROM pg_settings s
                    WHERE lower(s.name) = lower(settings.name) AND s.source = 'client')
""".encode()
"""Start-up options of the connection stay as they are."""


@dataclass
class Origin:
    """How a connection was opened."""

    parameters: str
    resettable: bool
    """The database had no settings when the backend began."""


class Statements(PrepareManager):
    """The prepared statements of a backend, which stay prepared for its next connection.

    A statement is prepared when it is repeated, and stays so after a rollback. psycopg prepares it
    later, keeps a hundred and drops all with each rollback: nearly all would be planned each time.
    A connection that sets its threshold also sets how its statements are planned: it gets none of
    them and leaves none.
    """

    prepared_max = 2000
    own = False

    def get(self, query: PostgresQuery, prepare: bool | None = None) -> tuple[Prepare, bytes]:
        """Return whether a statement is prepared or to be prepared now, and its name."""
        repeated = prepare is None and not self.own and self.key(query) in self._counts
        return super().get(query, True if repeated else prepare)

    def _should_discard(self, prep: Prepare, results: Sequence[PGresult], *_: Any) -> bool:
        """Drop all after a change of the schema; a database that has one is not used again."""
        if not self.own and any(result.command_status == b"ROLLBACK" for result in results):
            return False
        return super()._should_discard(prep, results)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "prepare_threshold" and value != self.prepare_threshold:
            self.own = True
            self.clear()
        super().__setattr__(name, value)


@dataclass
class Backend:
    """A backend that no connection uses."""

    pgconn: Any
    statements: Statements
    names: dict[Any, bytes]
    """The statements that a PinnedConnection prepared."""


class Sessions:
    """Backends of a pytest process, by database and parameters.

    `processes` is the number of processes that use the server.
    """

    def __init__(self, processes: int = 1) -> None:
        self.max_idle = KEPT_IN_ALL // processes
        self._idle: dict[str, dict[str, list[Backend]]] = {}
        self._hosts: dict[str, object] = {}
        self._origins: weakref.WeakKeyDictionary[object, Origin] = weakref.WeakKeyDictionary()
        self._close = AsyncConnection.close
        self._closed: Any = PGconn.connect_start(b"host=/nonexistent")
        self._closed.finish()

    def install(self) -> None:
        """Reuse backends in all asynchronous connections of this process."""
        sessions = self

        def connect(
            cls: type[AsyncConnection[Any]], parameters: str = ""
        ) -> Generator[Any, Any, AsyncConnection[Any]]:
            database = sessions._database(parameters)
            if database and (backend := sessions._take(database, parameters)) is not None:
                conn = cls(backend.pgconn)
                conn._prepared = backend.statements
                if isinstance(conn, PinnedConnection):
                    conn._prepared_names.update(backend.names)
                sessions._origins[conn] = Origin(parameters, resettable=True)
                return conn
            conn = yield from super(AsyncConnection, cls)._connect_gen(parameters)
            if database:
                resettable = not _run(conn.pgconn, SETTINGS.encode())
                sessions._origins[conn] = Origin(parameters, resettable)
                conn._prepared = Statements()
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
        self._hosts[database] = _place(url)[1]

    def end(self, database: str) -> None:
        """Close the backends of a database."""
        for waiting in self._idle.pop(database, {}).values():
            for backend in waiting:
                backend.pgconn.finish()

    def _database(self, parameters: str) -> str | None:
        """Return the lent database that the parameters name, if they lead to it directly."""
        database, host = _place(parameters)
        return database if database in self._idle and host == self._hosts[database] else None

    def _take(self, database: str, parameters: str) -> Backend | None:
        waiting = self._idle[database].get(parameters, [])
        while waiting:
            backend = waiting.pop()
            try:
                if _run(backend.pgconn, RESUME):
                    _run(backend.pgconn, APPLY)
            except OperationalError:
                backend.pgconn.finish()
            else:
                return backend
        return None

    def _keep(self, conn: AsyncConnection[Any]) -> bool:
        pgconn = conn.pgconn
        statements = conn._prepared
        origin = self._origins.get(conn)
        if origin is None or not origin.resettable:
            return False
        if (database := self._database(origin.parameters)) is None:
            return False
        waiting = self._idle[database].setdefault(origin.parameters, [])
        if len(waiting) >= KEPT or pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        names = dict(conn._prepared_names) if isinstance(conn, PinnedConnection) else {}
        if not isinstance(statements, Statements) or statements.own:
            statements = Statements()
            names = {}
        try:
            kept = statements._counts or statements._names or names
            _run(pgconn, RESET if kept else DEALLOCATE + RESET)
        except OperationalError:
            return False
        while pgconn.notifies():
            pass
        waiting.append(Backend(pgconn, statements, names))
        while sum(map(len, lists := self._idle_lists())) > self.max_idle:
            others = (idle for idle in lists if idle is not waiting)
            next(others, waiting).pop(0).pgconn.finish()
        return True

    def _idle_lists(self) -> list[list[Backend]]:
        return [idle for known in self._idle.values() for idle in known.values() if idle]


@lru_cache
def _place(parameters: str) -> tuple[str, object]:
    """Return database and host."""
    given = conninfo_to_dict(parameters)
    return str(given.get("dbname")), given.get("host")


def _run(backend: Any, statements: bytes) -> int:
    """Run the statements; return the number of rows of the last. Raises OperationalError."""
    result = backend.exec_(statements)
    if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        raise OperationalError(result.error_message.decode(errors="replace"))
    return int(result.ntuples)
