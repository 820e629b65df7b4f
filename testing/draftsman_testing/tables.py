"""The contract of the tables of a package, as those of draftsman keep it.

async def test_our_tables(rt):
    async with rt.db.connection() as conn:
        await check_tables(conn, "fax")
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from draftsman.database.database import Connection
from draftsman.database.migration_files import available

TOO_LARGE: Final = {
    "text": "repeat('x', 100001)",
    "text[]": "ARRAY[repeat('x', 4001)]",
    "json": """('{"x": "' || repeat('x', 1048576) || '"}')""",
    "jsonb": """('{"x": ' || repeat('[', 500) || repeat(']', 500) || '}')""",
    "timestamp with time zone": "'infinity'",
}
"""A value by type that no column takes."""
DOCUMENTS: Final = ("text", "text[]", "json", "jsonb")
_CREATED: Final = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?draftsman\.(\w+)", re.MULTILINE)
_COMMENTS: Final = """
    SELECT t.relname, a.attname
      FROM pg_class t
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum >= 0 AND NOT a.attisdropped
     WHERE t.relnamespace = 'draftsman'::regnamespace AND NOT t.relispartition
       AND t.relname = ANY(%(tables)s)
       AND col_description(t.oid, a.attnum) IS NULL
     UNION ALL
    SELECT t.relname, NULL
      FROM pg_class t
     WHERE t.relnamespace = 'draftsman'::regnamespace AND NOT t.relispartition
       AND t.relname = ANY(%(tables)s)
       AND obj_description(t.oid, 'pg_class') IS NULL
"""
_CHECKS: Final = """
    SELECT t.relname, a.attname, format_type(a.atttypid, NULL),
           array_agg(pg_get_expr(c.conbin, c.conrelid)) FILTER (WHERE c.oid IS NOT NULL),
           (SELECT array_agg(format('NULL::%%s AS %%I', format_type(o.atttypid, NULL), o.attname))
              FROM pg_attribute o
             WHERE o.attrelid = t.oid AND o.attnum > 0 AND NOT o.attisdropped
               AND o.attnum <> a.attnum)
      FROM pg_class t
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_constraint c
        ON c.conrelid = t.oid AND c.contype = 'c' AND a.attnum = ANY(c.conkey)
     WHERE t.relnamespace = 'draftsman'::regnamespace AND NOT t.relispartition
       AND t.relname = ANY(%(tables)s)
     GROUP BY t.oid, t.relname, a.attname, a.attnum, a.atttypid
"""
_PRIVILEGES: Final = """
    SELECT t.relname, g.privilege_type,
           CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
      FROM pg_class t, aclexplode(t.relacl) g
     WHERE t.relnamespace = 'draftsman'::regnamespace AND NOT t.relispartition
       AND t.relname = ANY(%(tables)s)
       AND g.grantee <> t.relowner
       AND (g.grantee = 0 OR g.privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE'))
"""


def tables_of(channel: str | None) -> list[str]:
    """Return the tables that the package of a channel creates; None: those of draftsman."""
    return [
        name
        for item in available()
        if (item.source.channel if item.source else None) == channel
        for name in _CREATED.findall(item.sql)
    ]


async def check_tables(conn: Connection, channel: str | None, *, sizes: bool = True) -> None:
    """Check the tables of the package of a channel in a migrated database.

    Each table and column has a comment; a CHECK refuses texts and documents that are too large,
    unless not `sizes`; PUBLIC has no privilege, and a role at most those to read and write rows.
    Raises AssertionError with all problems.
    """
    tables = tables_of(channel)
    assert tables, f"the package of the channel {channel} creates no table"
    problems = [
        f"{table}{f'.{column}' if column else ''}: it has no comment"
        for table, column in await _rows(conn, _COMMENTS, tables)
    ]
    problems += [
        f"{table}: {role} has the privilege {privilege}; revoke it"
        for table, privilege, role in await _rows(conn, _PRIVILEGES, tables)
    ]
    if sizes:
        problems += [problem async for problem in _unlimited(conn, tables)]
    assert not problems, "\n".join(problems)


async def _unlimited(conn: Connection, tables: Sequence[str]) -> AsyncIterator[str]:
    """Yield the texts and documents for which no CHECK refuses a value that is too large."""
    for table, column, type, checks, others in await _rows(conn, _CHECKS, tables):
        if type not in DOCUMENTS:
            continue
        row = ", ".join([f"{TOO_LARGE[type]}::{type} AS {column}", *(others or ())])
        results = [
            result
            for check in checks or ()
            for (result,) in await _rows(conn, f"SELECT {check} FROM (SELECT {row}) t", ())
        ]
        if False not in results:
            yield f"{table}.{column}: no CHECK refuses a {type} that is too large"


async def _rows(conn: Connection, text: str, tables: Sequence[str]) -> list[tuple[Any, ...]]:
    cursor = await conn.execute(text, {"tables": list(tables)})
    return list(await cursor.fetchall())
