"""The constraints on the size of texts, documents and times: each refuses too large values."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.tables import TOO_LARGE
from tests.support.statements import rows, value

COLUMNS: Final = """
    SELECT t.relname, pg_get_expr(c.conbin, c.conrelid), array_agg(a.attname),
           array_agg(format_type(a.atttypid, NULL))
      FROM pg_constraint c
      JOIN pg_class t ON t.oid = c.conrelid AND t.relnamespace = 'draftsman'::regnamespace
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.conname = t.relname || '_sizes'
     GROUP BY t.relname, c.oid
"""


async def test_every_column_of_a_limited_table_refuses_what_is_too_large(conn: Connection) -> None:
    tables = await rows(conn, COLUMNS)
    assert len(tables) > 30
    for table, expression, names, types in tables:
        empty = dict(zip(names, [f"NULL::{type}" for type in types], strict=True))
        for name, type in zip(names, types, strict=True):
            if type not in TOO_LARGE or (table, type) == ("channel_limits", _TIME):
                continue
            row = empty | {name: f"{TOO_LARGE[type]}::{type}"}
            columns = ", ".join(f"{text} AS {column}" for column, text in row.items())
            fits = await value(conn, f"SELECT {expression} FROM (SELECT {columns}) t")
            assert fits is False, f"{table}.{name}"


_TIME: Final = "timestamp with time zone"
