"""The page about the metrics matches the code."""

from __future__ import annotations

from tests.docs.metrics import PAGE, page


def test_page_matches_the_metrics() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.metrics"
