"""Links of the pages to files and headings of the project."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN: Final = MarkdownIt()


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a text that name no file or heading, relative to its page."""
    links = [str(token.attrs["href"]) for token in _inline(text) if token.type == "link_open"]
    return [link for link in links if "://" not in link and not _leads(page, text, link)]


def _leads(page: Path, text: str, link: str) -> bool:
    name, _, heading = unquote(link).partition("#")
    path = page.parent / name if name else page
    if not heading:
        return path.exists()
    return path.is_file() and heading in _headings(path.read_text("utf-8") if name else text)


@functools.cache
def _headings(text: str) -> frozenset[str]:
    """Return the anchors that GitHub gives to the headings."""
    tokens = _MARKDOWN.parse(text)
    headings = [
        "".join(part.content for part in title.children or [])
        for opening, title in itertools.pairwise(tokens)
        if opening.type == "heading_open"
    ]
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )


def _inline(text: str) -> Iterator[Token]:
    for token in _MARKDOWN.parse(text):
        yield from token.children or []
