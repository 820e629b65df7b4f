"""Writes docs/data-model.md from the comments on tables and columns of a migrated database.

python -m tests.docs.data_model
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import class_row

from draftsman.database.migration_files import available
from tests.docs.pages import DOCS, filled
from tests.support.server import Server, make_home

PAGE: Final = DOCS / "data-model.md"
TABLES: Final = """
SELECT relname AS name, obj_description(oid, 'pg_class') AS description
  FROM pg_class
 WHERE relnamespace = 'draftsman'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"""
COLUMNS: Final = """
SELECT attname AS name,
       replace(format_type(atttypid, atttypmod), 'draftsman.', '') AS type,
       NOT attnotnull AS nullable,
       col_description(attrelid, attnum) AS description
  FROM pg_attribute
 WHERE attrelid = format('draftsman.%%I', %(table)s::text)::regclass
   AND attnum > 0 AND NOT attisdropped
 ORDER BY attnum"""
ENUMS: Final = """
SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
  FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
 WHERE t.typnamespace = 'draftsman'::regnamespace
 GROUP BY t.typname
 ORDER BY t.typname"""
CREATED: Final = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?draftsman\.(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its comment."""

    name: str
    type: str
    nullable: bool
    description: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table, with its comment."""

    name: str
    description: str | None
    columns: list[Column]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables of a database in the order of their migrations, and the values of its enums."""

    tables: list[Table]
    enums: list[tuple[str, list[str]]]


def catalog(url: str) -> Catalog:
    """Return the tables and enums of a database."""
    with psycopg.connect(url) as conn:
        tables = [
            Table(name, description, _columns(conn, name))
            for name, description in conn.execute(TABLES).fetchall()
        ]
        enums = conn.execute(ENUMS).fetchall()
    order = [name for item in available() for name in CREATED.findall(item.sql)]
    return Catalog(sorted(tables, key=lambda table: order.index(table.name)), enums)


def _columns(conn: psycopg.Connection[Any], table: str) -> list[Column]:
    with conn.cursor(row_factory=class_row(Column)) as cursor:
        return cursor.execute(COLUMNS, {"table": table}).fetchall()


def page(text: str, current: Catalog) -> str:
    """Return the page with current tables."""
    return filled(text, _lines(current))


def _lines(current: Catalog) -> Iterator[str]:
    for table in current.tables:
        yield f"## {table.name}\n\n{table.description}\n"
        yield "| column | type | null | description |"
        yield "|---|---|---|---|"
        for column in table.columns:
            null = "yes" if column.nullable else ""
            yield f"| `{column.name}` | {column.type} | {null} | {column.description} |"
        yield ""
    yield "## Enums\n"
    yield "| type | values |"
    yield "|---|---|"
    for name, values in current.enums:
        yield f"| {name} | {', '.join(values)} |"


def _write() -> None:
    server = Server(make_home(), os.environ.get("DRAFTSMAN_TEST_URL"))
    try:
        current = catalog(server.url(server.create()))
    finally:
        server.end()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), current), encoding="utf-8")


if __name__ == "__main__":
    _write()
