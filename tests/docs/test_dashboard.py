"""The page about the dashboard matches the code; tests/soak takes its pictures."""

from __future__ import annotations

import re

from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.tables.filter import FIELDS, parse
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS
from draftsman_tui.dashboard.themes import NAMES
from tests.docs.dashboard import PAGE, page
from tests.docs.pages import DOCS
from tests.docs.pictures import PICTURED, PLACE


def test_the_page_has_every_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.dashboard"


def test_the_page_has_every_field_view_and_theme() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in FIELDS if f"{name}:" not in text] == []
    assert [name for name in (*BUILTIN_VIEWS, *NAMES) if f"`{name}`" not in text] == []


def test_the_filters_of_the_page_can_be_typed() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| rows", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 5
    for text in rows:
        assert parse(text)


def test_keys_on_other_pages_are_those_of_their_table() -> None:
    keys = {
        (view, key)
        for command in COMMANDS
        for view in (command.on or {command.name})
        for key in command.keys.split(",")
    }
    named = []
    for path in DOCS.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        for sentence in re.findall(r"In the dashboard[^.]*?`:\w+`[^.]*\.", text):
            (view,) = re.findall(r"`:(\w+)`", sentence)
            named += [(view, key) for key in re.findall(r"`(\w)`", sentence)]
    assert len(named) > 5
    assert [pair for pair in named if pair not in keys] == []


def test_every_picture_is_on_a_page() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.glob("*.md")]
    named = {
        (page.parent / name).resolve()
        for page in pages
        for name in PICTURED.findall(page.read_text(encoding="utf-8"))
    }
    assert {path for path in named if path.parent == PLACE} == set(PLACE.glob("*.svg"))
    assert [path for path in named if not path.exists()] == []
