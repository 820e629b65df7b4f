"""The documentation and the help of the sweeps match the code."""

from __future__ import annotations

from tests.docs.sweeps import HELP, PAGE, help_rows, page

REGENERATE = "regenerate it: python -m tests.docs.sweeps"


def test_page_matches_the_sweeps() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, REGENERATE


def test_help_matches_the_sweeps() -> None:
    assert HELP.read_text(encoding="utf-8") == help_rows(), REGENERATE
