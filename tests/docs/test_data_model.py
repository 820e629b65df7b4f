"""The page about the tables matches the database, and describes each column."""

from __future__ import annotations

from collections import defaultdict

from tests.docs.data_model import PAGE, catalog, page, purposes


def test_page_matches_the_database(database_url: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    hint = "regenerate it: python -m tests.docs.data_model"
    assert page(text, catalog(database_url)) == text, hint


def test_exactly_the_existing_tables_and_columns_are_described(database_url: str) -> None:
    existing: dict[str, set[str]] = defaultdict(lambda: {""})
    for table, column, *_ in catalog(database_url)[0]:
        existing[table].add(column)
    explained = {table: set(names) for table, names in purposes().items()}
    assert explained == existing
    assert all(text for names in purposes().values() for text in names.values())
