"""The page about the events of a job matches the code."""

from __future__ import annotations

from tests.docs.events import PAGE, page


def test_page_matches_the_events() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.events"
