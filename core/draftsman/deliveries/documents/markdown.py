"""Printer of documents as Markdown, for comments. Pure.

What differs between media is in their `Markup`: escapes, mentions, and how people answer there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Protocol

from draftsman.deliveries.documents.document import (
    SHORT,
    Addressees,
    Choices,
    Code,
    Command,
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
    Quote,
    Step,
    Strong,
    Text,
    Time,
    descriptions_at,
    elsewhere,
    is_cut,
    more_items,
    read_at,
)
from draftsman.deliveries.documents.versions import Fold, fit
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef
from draftsman.text import capitalized

MAX_TITLE: Final = 500
MAX_ADDRESSEES: Final = 20
"""People who are mentioned; the others are counted."""
MAX_DESCRIPTIONS: Final = 10
"""Choices that are described; of more, only the labels are shown."""
MAX_LIST: Final = 5000
"""Characters of a list; a choice that is left out can still be named by its number."""


class Markup(Protocol):
    """The Markdown of a medium; `most` counts characters before they are escaped."""

    in_file: str
    """Where the files of a message are: `attached to the card`."""

    def block(self, text: str, most: int) -> str:
        """Return an inert text of several lines."""

    def line(self, text: str, most: int) -> str:
        """Return an inert text in a single line."""

    def code(self, text: str, most: int, language: str) -> str:
        """Return a block of code that its text cannot end."""

    def link(self, url: str) -> str:
        """Return a link that shows its URL; "" for one that leads to the place itself."""

    def actor(self, actor: ActorRef) -> str:
        """Return the name of a person or account, without a mention."""

    def mention(self, person: Person) -> str:
        """Return a mention, or the name of a person without an account there."""

    def step(self, step: Step) -> str:
        """Return how to take a step there; "" where the medium does not say."""


def print_markdown(
    document: Document, markup: Markup, full: Command, most: int, measure: Callable[[str], int]
) -> str:
    """Return a document as paragraphs of Markdown within a length; `full` shows all of it."""

    def paragraphs(parts: Sequence[Part], _: Fold) -> list[str]:
        return [*filter(None, _paragraphs(parts, markup))]

    def fits(pieces: Sequence[str]) -> bool:
        return measure("\n\n".join(pieces)) <= most

    return "\n\n".join(fit(document, paragraphs, fits, lambda _: False, full))


def _paragraphs(parts: Sequence[Part], markup: Markup) -> Iterator[str]:
    for part in parts:
        yield _paragraph(part, markup)
        yield print_text(elsewhere(part), markup, most=SHORT)


def _paragraph(part: Part, markup: Markup) -> str:
    match part:
        case Headline(mark, name, title, verb):
            asks = f"{verb}:" if verb else ""
            words = (mark.emoji, strong(name), strong(markup.line(title, MAX_TITLE)), asks)
            return " ".join(filter(None, words))
        case Facts():
            facts = (print_text(item, markup, most=SHORT, is_line=True) for item in part.all)
            return " · ".join(filter(None, facts))
        case Paragraph(text, most):
            return print_text(text, markup, most=most)
        case Note(text):
            return print_text(text, markup, most=SHORT, is_line=True)
        case Quote(text, most):
            return quoted(markup.block(text, most)) if text.strip() else ""
        case Code(text, most, language):
            return markup.code(text, most, language)
        case InFile(what):
            return f"{what} is {markup.in_file}."
        case Choices() | Items():
            return _list(part, markup)
        case Addressees(people):
            mentions = ", ".join(markup.mention(person) for person in people[:MAX_ADDRESSEES])
            hidden = len(people) - MAX_ADDRESSEES
            return f"For {mentions} and {hidden} more" if hidden > 0 else f"For {mentions}"
        case Footer(items):
            texts = (print_text(item, markup, most=SHORT) for item in items)
            return " ".join(f"{capitalized(text)}." for text in texts if text)
        case Controls():
            return ""


def strong(line: str) -> str:
    """Return an inert line in bold; an empty line stays empty."""
    return f"**{line}**" if line.strip() else ""


def quoted(text: str) -> str:
    """Return an inert text as a quote, which is never parsed as an answer."""
    return "\n".join(f"> {row}".rstrip() for row in text.split("\n"))


def print_text(text: Text, markup: Markup, *, most: int, is_line: bool = False) -> str:
    """Return a text; the words between links, commands and steps are escaped together."""
    escape = markup.line if is_line else markup.block
    blanks = " " if is_line else " \n"
    pieces: list[str] = []
    words = ""
    for span in text:
        match span:
            case Link() | Strong() | Command() | Step():
                if words:
                    pieces.append(_padded(escape(words, most), words, blanks))
                    words = ""
                pieces.append(_special(span, markup))
            case _:
                words += plain((span,), markup)
    if words:
        pieces.append(_padded(escape(words, most), words, blanks))
    return "".join(pieces).strip()


def plain(text: Iterable[object], markup: Markup) -> str:
    """Return a text without markup, with the names that the medium has."""
    words = ""
    for span in text:
        match span:
            case ActorRef():
                words += markup.actor(span)
            case str() | Time():
                words += str(span)
    return words


def _special(span: Link | Strong | Command | Step, markup: Markup) -> str:
    match span:
        case Strong(text):
            return strong(markup.line(text, SHORT))
        case Link(url):
            return markup.link(url)
        case Command(line):
            return f"`{line}`"
        case Step():
            return markup.step(span)


def _padded(escaped: str, words: str, blanks: str) -> str:
    """Return an escaped text with the blanks at its ends, which escaping may have removed."""
    before = words[: len(words) - len(words.lstrip(blanks))]
    after = words[len(words.rstrip(blanks)) :] if words.strip(blanks) else ""
    return f"{before}{escaped.strip(blanks)}{after}"


def _fitting_lines(lines: Sequence[str]) -> int:
    """Return how many lines of a list are shown."""
    lengths = accumulate(len(line) + 1 for line in lines)
    return sum(length <= MAX_LIST for length in lengths)


def _lines(part: Choices | Items, markup: Markup) -> Iterator[str]:
    """Yield the lines of a list; of many choices, only the labels are shown."""
    if isinstance(part, Items):
        for item in part.items:
            yield f"- {print_text(item, markup, most=SHORT, is_line=True)}"
        return
    described = len(part.items) <= MAX_DESCRIPTIONS
    for number, choice in enumerate(part.items, 1):
        line = f"{number}. {markup.line(choice.label, 200)}"
        if described and choice.description:
            line += f" - {markup.line(choice.description, MAX_TITLE)}"
        yield line


def _list(part: Choices | Items, markup: Markup) -> str:
    """Return the lines of a list, and the notice of what it leaves out."""
    lines = [*_lines(part, markup)]
    shown = _fitting_lines(lines)
    notices = [more_items(part, shown)]
    if isinstance(part, Choices) and len(part.items) > MAX_DESCRIPTIONS:
        notices.append(descriptions_at(part))
    if isinstance(part, Items) and any(is_cut(Note(item)) for item in part.items[:shown]):
        notices.append(read_at(part.full))
    texts = (print_text(notice, markup, most=SHORT) for notice in notices)
    return "\n\n".join(filter(None, ("\n".join(lines[:shown]), *texts)))
