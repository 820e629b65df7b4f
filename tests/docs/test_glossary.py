"""Classes and tables that docs/glossary.md names exist."""

from __future__ import annotations

import re
from collections import Counter

from draftsman.database.migration_files import available
from tests.docs.code_names import ROOT
from tests.docs.pages import DOCS

TEXT = (DOCS / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `(\w+)` \| (?:`(\w+)`|\u2013) \|$", TEXT, re.M)

DEFINED = re.compile(r"^(?:class )?(\w+)(?=[(:]| = )", re.M)
"""Names of classes and aliases at the top of a module."""


def test_every_row_has_a_term_a_meaning_and_a_class() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    titles = [line for line in rows if line.startswith("| Term |")]
    assert len(ROWS) == len(rows) - len(titles) > 60


def test_every_term_is_listed_once() -> None:
    terms = [term for names, *_ in ROWS for term in names.split(", ")]
    assert [term for term, times in Counter(terms).items() if times > 1] == []


def test_the_classes_exist() -> None:
    folders = ("core/draftsman", "bots/draftsman_bots", "tui/draftsman_tui")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    defined = {name for path in paths for name in DEFINED.findall(path.read_text("utf-8"))}
    assert {name for _, _, name, _ in ROWS} - defined == set()


def test_the_tables_exist() -> None:
    migrations = "".join(item.sql for item in available())
    tables = set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?draftsman\.(\w+)", migrations))
    assert {table for *_, table in ROWS if table} - tables == set()
