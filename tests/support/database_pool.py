"""Databases that tests use in turn: emptied if that makes them as new, else dropped.

lend ── none has been idle long enough ────────────────────────────── a new copy of the template
  └─ the longest idle database ──── only rows were written in it ──── emptied, and lent again
                                └── anything else, or it is in use ── dropped, then the next
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql

from tests.support.server import Server
from tests.support.sessions import IDLE, Sessions

MAX_IDLE = 1
"""Number of databases used later before a database is lent again: sessions take time to end."""
MAX_REUSES = 200
"""Number of tests after which a database is dropped, because of dead rows in its files."""
MAX_WRITES = 10_000
"""Number of rows written to a table, all tests together, after which its database is dropped."""
STATE = sql.SQL("""
SELECT
    (SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND application_name <> {idle}) AS sessions,
    (SELECT sum(pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid)
                + pg_stat_get_tuples_deleted(oid))
     FROM pg_class
     WHERE oid < 16384 AND NOT relisshared AND relkind IN ('r', 't')) AS written_to_catalogs,
    (SELECT array_agg(oid) FROM pg_class
     WHERE oid >= 16384 AND relkind = 'r'
       AND (reltuples >= 0
            OR pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) > {many}))
        AS analyzed_or_large,
    (SELECT (datdba, datallowconn, datconnlimit, datacl)::text FROM pg_database
     WHERE datname = current_database()) AS properties,
    ({seeds}) AS seeds,
    (SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
     WHERE datname = current_database()) AS settings
""")
"""State that must equal that of a new copy, and the number of the database's own settings.

A session's writes are counted after its end. The functions replace pg_stat_sys_tables, whose other
columns take ten times as long, and pg_relation_size, which asks the file system for each table."""
TABLES = sql.SQL("SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'draftsman'")
SEQUENCES = sql.SQL("""
SELECT format('%I.%I', schemaname, sequencename), COALESCE(last_value, start_value),
       last_value IS NOT NULL
FROM pg_sequences
""")


class Databases:
    """The databases of a process of pytest."""

    def __init__(self, server: Server, sessions: Sessions | None = None) -> None:
        self._server = server
        self._sessions = sessions or Sessions()
        self._lent: dict[str, PooledDatabase] = {}
        self._resting: deque[PooledDatabase] = deque()

    def acquire(self) -> str:
        """Return the name of a migrated database that is new or as good as new."""
        database = self._renewed() or self._made()
        self._lent[database.name] = database
        return database.name

    def release(self, name: str) -> None:
        """Return a database to the pool, whatever a test has changed in it."""
        self._resting.append(self._lent.pop(name))

    def close(self) -> None:
        """Disconnect from all databases."""
        for database in (*self._resting, *self._lent.values()):
            database.close()

    def _renewed(self) -> PooledDatabase | None:
        while len(self._resting) > MAX_IDLE:
            database = self._resting.popleft()
            if database.renew():
                self._server.begin(database.name)
                return database
            database.close()
            self._sessions.end(database.name)
            self._server.drop(database.name)
        return None

    def _made(self) -> PooledDatabase:
        name = self._server.create()
        self._sessions.begin(name, self._server.url(name))
        return PooledDatabase(name, self._server.url(name))


class PooledDatabase:
    """A database, and a session in it that empties it."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._turns = 1
        self._conn = psycopg.connect(url, autocommit=True, application_name="draftsman-tests")
        # neither a trigger nor a foreign key protects a row from this session
        self._conn.execute("SET session_replication_role = replica")
        tables = [sql.Identifier(*row) for row in self._all(TABLES)]
        seeded = [table for table in tables if self._all(_rows(table))]
        empty = [table for table in tables if table not in seeded]
        seeds = sql.SQL(" || ").join(map(_digest, seeded))
        state = STATE.format(seeds=seeds, idle=sql.Literal(IDLE), many=sql.Literal(MAX_WRITES))
        self._state = state.as_bytes(self._conn)
        self._empty = self._emptying(empty).as_bytes(self._conn)
        self._reset = sql.SQL("ALTER DATABASE {} RESET ALL").format(sql.Identifier(name))
        *self._new, _ = self._all(self._state)[0]

    def renew(self) -> bool:
        """Renew the database; return False if that requires more than deleting rows."""
        if self._turns == MAX_REUSES:
            return False
        self._turns += 1
        try:
            *state, settings = self._all(self._state)[0]
            if state != self._new:
                return False
            self._conn.execute(self._empty, prepare=True)
            if settings:
                self._conn.execute(self._reset)
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Disconnect."""
        self._conn.close()

    def _emptying(self, tables: Iterable[sql.Identifier]) -> sql.Composed:
        """Return a statement that is planned once for all uses."""
        deletes = [
            sql.SQL("{} AS (DELETE FROM {})").format(sql.Identifier(f"t{n}"), table)
            for n, table in enumerate(tables)
        ]
        resets = [sql.SQL("setval({}, {}, {})").format(*row) for row in self._all(SEQUENCES)]
        comma = sql.SQL(", ")
        return sql.SQL("WITH {} SELECT {}").format(comma.join(deletes), comma.join(resets))

    def _all(self, query: bytes | sql.SQL | sql.Composed) -> list[tuple[Any, ...]]:
        return self._conn.execute(query, prepare=True).fetchall()


def _rows(table: sql.Identifier) -> sql.Composed:
    return sql.SQL("SELECT * FROM {} LIMIT 1").format(table)


def _digest(table: sql.Identifier) -> sql.Composed:
    text = "(SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {} t)"
    return sql.SQL(text).format(table)
