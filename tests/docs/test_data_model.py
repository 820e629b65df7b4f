"""The page about the tables is true, and says of each column what it is for."""

from __future__ import annotations

from collections import defaultdict

from tests.docs.data_model import PAGE, catalog, page, purposes


def test_the_page_says_what_the_database_has(database_url: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    again = "regenerate it: python -m tests.docs.data_model"
    assert page(text, catalog(database_url)) == text, again


def test_every_table_and_column_is_explained_and_nothing_else_is(database_url: str) -> None:
    found: dict[str, set[str]] = defaultdict(lambda: {""})
    for table, column, *_ in catalog(database_url)[0]:
        found[table].add(column)
    explained = {table: set(names) for table, names in purposes().items()}
    assert explained == found
    assert all(text for names in purposes().values() for text in names.values())
