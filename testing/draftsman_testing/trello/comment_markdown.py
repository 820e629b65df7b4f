"""Parser of comments by the rules of Markdown: its formats and its visible text.

Trello has no specification of its dialect. Its editor writes bold, italic, strikethrough, inline
code, links, lists, quotes, code blocks, headings and rules, and renders neither tables nor HTML.
The parser is CommonMark with tables and strikethrough, so that it finds every text that a
renderer may take for one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass
class Seen:
    """A comment as people see it: its blocks in order, and its text without marks."""

    blocks: list[str] = field(default_factory=list)
    """Types of the blocks: paragraph, fence, ordered_list, … with the depth of nested lists."""
    inline: set[str] = field(default_factory=set)
    """Types of inline marks."""
    text: str = ""
    links: list[str] = field(default_factory=list)


def parse(comment: str) -> Seen:
    """Parse a comment."""
    seen = Seen()
    depth = 0
    lines = []
    for token in _PARSER.parse(comment):
        if token.type.endswith("list_open"):
            depth += 1
            seen.blocks.append(f"{token.type.removesuffix('_open')}{depth if depth > 1 else ''}")
        elif token.type.endswith("list_close"):
            depth -= 1
        elif token.type in ("fence", "code_block", "html_block", "hr"):
            seen.blocks.append(token.type)
            lines.append(token.content.rstrip("\n"))
        elif token.type == "inline":
            lines.append("".join(_inline(seen, token.children or ())))
        elif token.type.endswith("_open"):
            seen.blocks.append(token.type.removesuffix("_open"))
    seen.text = "\n".join(lines)
    return seen


def _inline(seen: Seen, tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type == "link_open":
            seen.inline.add("link")
            seen.links.append(str(token.attrs.get("href")))
        elif token.type in ("text", "text_special"):
            yield token.content
        elif token.type in ("code_inline", "html_inline", "image"):
            seen.inline.add(token.type)
            yield token.content
        elif token.type.endswith("_open"):
            seen.inline.add(token.type.removesuffix("_open"))
