"""The page about the tables matches the database, which has a comment on each column."""

from __future__ import annotations

from tests.docs.data_model import PAGE, catalog, page


def test_page_matches_the_database(database_url: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    hint = "regenerate it: python -m tests.docs.data_model"
    assert page(text, catalog(database_url)) == text, hint


def test_every_table_and_column_has_a_comment(database_url: str) -> None:
    tables = catalog(database_url).tables
    missing = [table.name for table in tables if not table.description]
    missing += [
        f"{table.name}.{column.name}"
        for table in tables
        for column in table.columns
        if not column.description
    ]
    assert missing == [], "write COMMENT ON COLUMN … below the table in its migration"
