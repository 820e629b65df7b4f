"""Writes the tables of docs/data-model.md from a migrated database and data_model.toml.

python -m tests.docs.data_model
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.docs.pages import DOCS, filled
from tests.support.server import Server, make_home

PAGE: Final = DOCS / "data-model.md"
PURPOSES: Final = [
    Path(__file__).with_name(name)
    for name in (
        "data_model.toml",
        "data_model_budgets.toml",
        "data_model_forges.toml",
        "data_model_people.toml",
        "data_model_queues.toml",
        "data_model_trello.toml",
    )
]
COLUMNS: Final = """
SELECT c.relname, a.attname, replace(format_type(a.atttypid, a.atttypmod), 'draftsman.', ''),
       NOT a.attnotnull
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT c.relispartition
 ORDER BY c.relname, a.attnum"""
ENUMS: Final = """
SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
  FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
 WHERE t.typnamespace = 'draftsman'::regnamespace
 GROUP BY t.typname
 ORDER BY t.typname"""
Column = tuple[str, str, str, bool]
Catalog = tuple[list[Column], list[tuple[str, list[str]]]]


def catalog(url: str) -> Catalog:
    """Return the columns (table, name, type, null) and the enums (name, values) of a database."""
    with psycopg.connect(url) as conn:
        columns: list[Any] = conn.execute(COLUMNS).fetchall()
        enums: list[Any] = conn.execute(ENUMS).fetchall()
    return columns, enums


def purposes() -> dict[str, dict[str, str]]:
    """Return the purpose of each table, under "", and of its columns."""
    texts: dict[str, dict[str, str]] = {}
    for path in PURPOSES:
        texts |= tomllib.loads(path.read_text(encoding="utf-8"))
    return texts


def page(text: str, tables: Catalog) -> str:
    """Return the page with current tables."""
    return filled(text, _lines(tables))


def _lines(tables: Catalog) -> Iterator[str]:
    columns, enums = tables
    for table, names in purposes().items():
        yield f"## {table}\n\n{names['']}\n"
        yield "| column | type | null | description |"
        yield "|---|---|---|---|"
        for _, name, kind, null in (column for column in columns if column[0] == table):
            yield f"| `{name}` | {kind} | {'yes' if null else ''} | {names.get(name, '')} |"
        yield ""
    yield "## Enums\n"
    yield "| type | values |"
    yield "|---|---|"
    for name, values in enums:
        yield f"| {name} | {', '.join(values)} |"


def _write() -> None:
    server = Server(make_home(), os.environ.get("DRAFTSMAN_TEST_URL"))
    try:
        tables = catalog(server.url(server.create()))
    finally:
        server.end()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    _write()
