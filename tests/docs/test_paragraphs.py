"""The pages can be scanned: no paragraph is longer than a reader takes in at a glance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt

from tests.docs.test_readme import PAGES

LONGEST: Final = 75
"""Words of a paragraph."""
MEAN: Final = 30
"""Words of a paragraph, over all pages: half a minute has seven of them."""
_MARKDOWN: Final = MarkdownIt().enable("table")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, those of lists included, with its length in words."""
    for opening, token in itertools.pairwise(_MARKDOWN.parse(text)):
        if opening.type == "paragraph_open":
            yield len(token.content.split()), token.content


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_paragraph_is_long(page: Path) -> None:
    found = [text for words, text in paragraphs(page.read_text("utf-8")) if words > LONGEST]
    assert found == [], "split it, or make it a list or a table"


def test_paragraphs_are_short() -> None:
    lengths = [words for page in PAGES for words, _ in paragraphs(page.read_text("utf-8"))]
    assert sum(lengths) / len(lengths) < MEAN
