"""Reader of the Markdown of a result, as parts of a document. Pure.

It knows paragraphs, headings, lists, fenced code, strong words and links; all else, such as HTML,
stays the text that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from draftsman.deliveries.documents.document import (
    Code,
    Command,
    Link,
    Note,
    Paragraph,
    Part,
    Span,
    Strong,
    Text,
    read_at,
)
from draftsman.formats.truncation import truncate
from draftsman.text import is_link

MAX_CODES: Final = 10
"""Blocks of code; more are texts."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})\s*([A-Za-z0-9_+-]{0,20})\s*")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.{1,200}?)[ \t#]*")
_BULLET: Final = re.compile(r"^([ \t]*)[-*+][ \t]+(?=\S)")
_INLINE: Final = re.compile(
    r"\*\*(?P<strong>[^\s*`][^*`\n]{0,198})\*\*"
    r"|\[(?P<text>[^\[\]\n]{0,500})\]\((?P<url>[^()\s]{1,1000})\)"
)


def read_markdown(source: str, most: int, full: Command) -> Iterator[Part]:
    """Yield a text in Markdown within a length; `full` shows all of it."""
    lines = truncate(source, most).splitlines()
    texts: list[str] = []
    codes = position = 0
    while position < len(lines):
        fence = _FENCE.fullmatch(lines[position])
        if fence is None or codes == MAX_CODES:
            texts.append(lines[position])
            position += 1
            continue
        yield from _paragraph(texts, most)
        texts = []
        code = _fenced(lines[position + 1 :], fence[1])
        yield Code("\n".join(code), most, language=fence[2], full=full)
        codes += 1
        position += len(code) + 2
    yield from _paragraph(texts, most)
    if len(source) > most:
        yield Note(read_at(full))


def _fenced(lines: list[str], fence: str) -> list[str]:
    """Return the lines up to the end of a fence, which may be missing."""
    for number, line in enumerate(lines):
        if line.strip().startswith(fence) and not line.strip(f" {fence[0]}"):
            return lines[:number]
    return lines


def _paragraph(lines: list[str], most: int) -> Iterator[Paragraph]:
    spans: list[Span] = []
    for line in "\n".join(lines).strip("\n").split("\n"):
        heading = _HEADING.fullmatch(line)
        bullets = _BULLET.sub(r"\1• ", line, 1)
        spans += ("\n", *([Strong(heading[1])] if heading else _inline(bullets)))
    text: Text = tuple(spans[1:])
    if any(str(span).strip() for span in text):
        yield Paragraph(text, most)


def _inline(line: str) -> Iterator[Span]:
    end = 0
    for match in _INLINE.finditer(line):
        strong, text, url = match["strong"], match["text"], match["url"]
        if url is not None and not is_link(url):
            continue
        yield line[end : match.start()]
        if strong is not None:
            yield Strong(strong)
        elif text.strip() and text != url:
            yield from (f"{text} (", Link(url), ")")
        else:
            yield Link(url)
        end = match.end()
    yield line[end:]
