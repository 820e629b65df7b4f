"""Printer of whole documents as HTML, for mail and pages. Pure.

All text is escaped, and a reader loads nothing from elsewhere: a picture is named, unless the
medium has it itself, and styles are classes or inline. What differs between media is in their
`HtmlMedium`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Final

from draftsman.deliveries.documents.document import (
    Addressees,
    Choice,
    Choices,
    Code,
    Command,
    Control,
    Controls,
    Document,
    Facts,
    Footer,
    Headline,
    InFile,
    Items,
    Link,
    Note,
    Paragraph,
    Part,
    PicturePart,
    Quote,
    RichPart,
    Span,
    Step,
    Strong,
    TablePart,
    Text,
    Time,
    more_items,
)
from draftsman.deliveries.documents.markdown import MAX_ADDRESSEES
from draftsman.deliveries.documents.versions import more_rows, picture_text
from draftsman.formats.invisible import escape_invisible
from draftsman.formats.times import format_time, spelled_time
from draftsman.text import capitalized, is_link

_NUMBER: Final = re.compile(
    r"\s*[-+\N{MINUS SIGN}]?[$€£]?\d[\d,._ ]*(?:e[-+]?\d+)?\s?(?:%|[A-Za-z]{1,3})?\s*"
)
"""A number with its currency or unit: `1,204`, `-3.5 %`, `$12.50`, `31 ms`."""
MAIL_STYLES: Final[Mapping[str, str]] = {
    "quote": "margin:0 0 1em;padding-left:.8em;border-left:3px solid #bbb",
    "code": "padding:.6em;background:#f4f4f4;white-space:pre-wrap;overflow-wrap:anywhere",
    "table": "border-spacing:1em .2em;text-align:left",
    "right": "text-align:right",
    "facts": "color:#666",
    "note": "color:#666",
    "footer": "color:#666",
}
"""Inline styles by class, for mail: its readers ignore those of a document's head."""


@dataclass(frozen=True, slots=True)
class HtmlMedium:
    """A mail, or a page."""

    in_file: str
    """Where the files of a message are: `attached to this mail`."""
    step: Callable[[Step], str]
    """Returns how to take a step there; "" where the medium does not say."""
    url: Callable[[Control], str] = lambda _: ""
    """Returns the address at which a control acts; "" where the medium does not show it."""
    picture: Callable[[PicturePart], str] = lambda _: ""
    """Returns the address at which the medium itself has a picture; "" for none."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """Inline styles by class."""


def print_html(document: Document, medium: HtmlMedium) -> str:
    """Return a document as elements of HTML, a line each."""
    printer = _Printer(medium)
    elements = (element for part in document for element in printer.elements(part))
    return "\n".join(filter(None, elements))


def time_html(moment: datetime, text: str = "") -> str:
    """Return a time, by default spelled, with the exact time as its title."""
    title = format_time(moment, seconds=True)
    machine = moment.astimezone(UTC).isoformat(timespec="seconds")
    shown = inert(text or spelled_time(moment))
    return f'<time datetime="{machine}" title="{title}">{shown}</time>'


def link_html(url: str, text: str = "") -> str:
    """Return a link, by default one that shows its URL; its text, if it is no link to a page."""
    return _anchor(url, text or url) if is_link(url) else inert(text or url)


def inert(text: str) -> str:
    """Return a text without markup, in which each character is visible."""
    return escape(escape_invisible(text))


def _anchor(url: str, text: str) -> str:
    return f'<a href="{inert(url)}" rel="noreferrer noopener">{inert(text)}</a>'


class _Printer:
    def __init__(self, medium: HtmlMedium) -> None:
        self._medium = medium
        self._right = self._attributes("right")

    def elements(self, part: Part | RichPart) -> Iterator[str]:
        """Yield the elements of a part."""
        match part:
            case Headline(mark, name, title, verb):
                asks = f"{verb}:" if verb else ""
                words = (mark.emoji, _strong(name), _strong(title), asks)
                yield self._element("p", "headline", " ".join(filter(None, words)))
            case Paragraph(text):
                yield self._element("p", "text", self._text(text))
            case Quote(text):
                yield self._element("blockquote", "quote", self._text((text.strip(),)))
            case Code(text):
                yield self._element("pre", "code", inert(text))
            case Choices(items):
                yield self._list("ol", map(_choice, items))
            case Items(items):
                yield self._list("ul", map(self._text, items))
                yield self._element("p", "note", self._text(more_items(part, len(items))))
            case TablePart(columns, rows):
                yield self._element("table", "table", self._table(columns, rows))
                if notice := more_rows(part, len(rows)):
                    yield self._small(notice)
            case Controls(items):
                urls = ((item.label, self._medium.url(item)) for item in items)
                links = " ".join(_anchor(url, label) for label, url in urls if url)
                yield self._element("p", "controls", links)
            case _:
                yield self._small(part)

    def _small(self, part: Facts | Note | InFile | Addressees | Footer | PicturePart) -> str:
        match part:
            case PicturePart(text):
                url = self._medium.picture(part)
                words = self._text(picture_text(part).text)
                return self._element("p", "picture", _image(url, text) if url else words)
            case Facts():
                facts = filter(None, map(self._text, part.all))
                return self._element("p", "facts", " · ".join(facts))
            case Note(text):
                return self._element("p", "note", self._text(text))
            case InFile(what):
                return self._element("p", "note", inert(f"{what} is {self._medium.in_file}."))
            case Addressees(people):
                names = ", ".join(person.name for person in people[:MAX_ADDRESSEES])
                hidden = len(people) - MAX_ADDRESSEES
                more = f" and {hidden} more" if hidden > 0 else ""
                return self._element("p", "addressees", inert(f"For {names}{more}"))
            case Footer(items):
                texts = filter(None, map(self._text, items))
                sentences = " ".join(f"{capitalized(text)}." for text in texts)
                return self._element("p", "footer", sentences)

    def _list(self, tag: str, items: Iterable[str]) -> str:
        return self._element(tag, "items", "".join(f"<li>{item}</li>" for item in items))

    def _text(self, text: Text) -> str:
        """Return a text with line breaks."""
        return "".join(map(self._span, text)).strip().replace("\n", "<br>")

    def _span(self, span: Span) -> str:
        match span:
            case Time(when, preposition):
                return f"{preposition} {time_html(when)}".lstrip()
            case Link(url):
                return link_html(url)
            case Command(line):
                return f"<code>{inert(line)}</code>"
            case Strong(text):
                return _strong(text)
            case Step():
                return inert(self._medium.step(span))
            case _:
                return inert(str(span))

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Return the rows of a table; numbers end at the right, below their heading."""
        layouts = [self._right if _has_numbers(cells) else "" for cells in zip(*rows, strict=True)]
        layouts = layouts or [""] * len(columns)

        def row_html(tag: str, cells: Sequence[str]) -> str:
            pairs = zip(layouts, cells, strict=True)
            return "".join(f"<{tag}{layout}>{inert(cell)}</{tag}>" for layout, cell in pairs)

        body = "".join(f"<tr>{row_html('td', row)}</tr>" for row in rows)
        return f"<thead><tr>{row_html('th', columns)}</tr></thead><tbody>{body}</tbody>"

    def _element(self, tag: str, name: str, content: str) -> str:
        """Return an element with its class and style; "" without content."""
        return f"<{tag}{self._attributes(name)}>{content}</{tag}>" if content else ""

    def _attributes(self, name: str) -> str:
        style = self._medium.styles.get(name)
        return f' class="{name}"' + (f' style="{style}"' if style else "")


def _choice(choice: Choice) -> str:
    return inert(f"{choice.label} - {choice.description}".removesuffix(" - "))


def _has_numbers(cells: Iterable[str]) -> bool:
    """Return whether the cells of a column are numbers, as far as they have a text."""
    texts = [cell for cell in cells if cell.strip()]
    return bool(texts) and all(map(_NUMBER.fullmatch, texts))


def _image(url: str, text: str) -> str:
    return f'<img src="{inert(url)}" alt="{inert(text)}"><br>{inert(text)}'


def _strong(text: str) -> str:
    return f"<strong>{inert(text)}</strong>" if text.strip() else ""
