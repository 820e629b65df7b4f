"""A history for the pictures: events of a single moment, which are moved apart by hours."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from tests.support.statements import rows, value

COLUMNS: Final = """
SELECT c.relname, a.attname
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
   AND a.atttypid = 'timestamptz'::regtype AND a.attgenerated = ''
   AND c.relname NOT IN ('leases', 'workers', 'schema_migrations')
"""


class Past:
    """Times that should have passed between two moments of a database.

    Times in the future stay as they are: deadlines count from now.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._passed: list[tuple[datetime, float]] = []

    async def wait(self, seconds: float) -> None:
        """Note that so much time passes here."""
        async with self._rt.db.connection() as conn:
            self._passed.append((await value(conn, "SELECT clock_timestamp()"), seconds))

    async def apply(self) -> None:
        """Move all times before each noted moment into the past."""
        async with self._rt.db.connection() as conn, conn.transaction():
            await conn.execute("SET LOCAL session_replication_role = replica")
            await self._moments(conn)
            tables: dict[str, list[str]] = {}
            for table, column in await rows(conn, COLUMNS):
                tables.setdefault(table, []).append(column)
            for table, columns in tables.items():
                changes = ", ".join(f"{name} = pg_temp.moved({name})" for name in columns)
                await conn.execute(f"UPDATE draftsman.{table} SET {changes}")

    async def _moments(self, conn: Connection) -> None:
        await conn.execute("CREATE TEMP TABLE passed (at timestamptz, seconds float8)")
        moments, seconds = zip(*self._passed, strict=True)
        await conn.execute(
            "INSERT INTO passed SELECT * FROM unnest(%s::timestamptz[], %s::float8[])",
            (list(moments), list(seconds)),
        )
        await conn.execute(
            "CREATE FUNCTION pg_temp.moved(moment timestamptz) RETURNS timestamptz LANGUAGE sql AS"
            " $$ SELECT moment - make_interval(secs => coalesce((SELECT sum(p.seconds)"
            " FROM pg_temp.passed p WHERE p.at > moment), 0)) $$"
        )
