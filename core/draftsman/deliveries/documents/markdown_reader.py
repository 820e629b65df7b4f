"""Reader of the Markdown of a result, as parts of a document; HTML stays the text that it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.documents.document import (
    Code,
    Command,
    Link,
    Note,
    Paragraph,
    Part,
    Span,
    Strong,
    read_at,
)
from draftsman.formats.truncation import truncate
from draftsman.text import is_link

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CODES: Final = 10
"""Blocks of code; more are texts."""
MAX_STRONG: Final = 200
"""Characters of strong words; more are not strong."""
_CONTAINERS: Final = frozenset({"bullet_list_open", "ordered_list_open", "blockquote_open"})


def read_markdown(source: str, most: int, full: Command) -> Iterator[Part]:
    """Yield a text in Markdown within a length; `full` shows all of it."""
    spans: list[Span] = []
    codes = 0
    for indent, bullet, token in _blocks(_parser().parse(truncate(source, most))):
        if token.type in ("fence", "code_block") and codes < MAX_CODES:
            yield from _paragraph(spans, most)
            spans = []
            language = token.info.split(" ")[0][:20]
            yield Code(token.content.removesuffix("\n"), most, language=language, full=full)
            codes += 1
            continue
        if spans:
            spans.append("\n" if token.hidden or bullet else "\n\n")
        spans.append(indent + bullet)
        spans += _spans(token, indent + " " * len(bullet))
    yield from _paragraph(spans, most)
    if len(source) > most:
        yield Note(read_at(full))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only what shows a result loads it

    # a definition of a link would be no text
    return MarkdownIt("commonmark", {"html": False}).disable("reference")


def _blocks(tokens: Sequence[Token]) -> Iterator[tuple[str, str, Token]]:
    """Yield the texts and blocks of code, each with its indent and the bullet before it.

    A text is `hidden` in a list whose items have no blank lines between them.
    """
    containers: list[str] = []
    bullet = ""
    is_heading = False
    opened: Token | None = None
    for token in tokens:
        match token.type:
            case kind if kind in _CONTAINERS:
                containers.append("> " if kind == "blockquote_open" else "  ")
            case "bullet_list_close" | "ordered_list_close" | "blockquote_close":
                containers.pop()
            case "list_item_open":
                bullet = f"{token.info}{token.markup} " if token.info else "• "
            case "heading_open" | "paragraph_open":
                opened = token
                is_heading = token.type == "heading_open"
            case "inline" | "fence" | "code_block" | "hr":
                token.hidden = opened is not None and opened.hidden and not bullet
                token.tag = "strong" if is_heading else ""
                indent = "".join(containers[: -1 if bullet else None])
                yield indent, bullet, token
                opened, bullet, is_heading = None, "", False


def _paragraph(spans: list[Span], most: int) -> Iterator[Paragraph]:
    if any(str(span).strip() for span in spans):
        yield Paragraph(tuple(span for span in spans if span != ""), most)


def _spans(block: Token, indent: str) -> Iterator[Span]:
    """Yield the text of a block; further lines have its indent."""
    if block.type != "inline":
        yield (block.content or block.markup).rstrip("\n").replace("\n", f"\n{indent}")
        return
    is_strong = block.tag == "strong"
    words = url = ""
    for token in block.children or ():
        match token.type:
            case "softbreak" | "hardbreak" if not url:
                yield from _words(words, is_strong=is_strong)
                words = ""
                yield f"\n{indent}"
            case "strong_open" | "strong_close" if not url:
                yield from _words(words, is_strong=is_strong)
                words = ""
                is_strong = token.nesting == 1 or block.tag == "strong"
            case "link_open" | "link_close":
                yield from _words(words, url, is_strong=is_strong)
                words, url = "", str(token.attrs.get("href", ""))
            case "code_inline":
                words += f"{token.markup}{token.content}{token.markup}"
            case _:
                words += token.content or " " * token.type.endswith("break")
    yield from _words(words, is_strong=is_strong)


def _words(words: str, url: str = "", *, is_strong: bool) -> Iterator[Span]:
    if url and not is_link(url):
        yield f"{words} ({url})"
    elif url and words.strip() and words != url:
        yield from (f"{words} (", Link(url), ")")
    elif url:
        yield Link(url)
    elif words:
        yield Strong(words) if is_strong and len(words) <= MAX_STRONG else words
