"""The sections of a job as parts of its page; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from markupsafe import Markup, escape

from draftsman.formats import times
from draftsman.formats.invisible import replace_invisible
from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    JobSection,
    Line,
    LineSpan,
    SectionText,
)
from draftsman_bots.web.pages import TONES, time_markup

LINKED: Final = frozenset({"retries", "parents", "children"})
"""Sections whose entries are jobs."""


@dataclass(frozen=True, slots=True)
class EntryMarkup:
    """An entry, with the page that it leads to; "": none."""

    lines: list[Markup]
    path: str


@dataclass(frozen=True, slots=True)
class SectionBlock:
    """Parts of a section beside each other that are of one kind."""

    facts: list[tuple[str, Markup]]
    entries: list[EntryMarkup]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class SectionMarkup:
    """A section."""

    name: str
    title: str
    blocks: list[SectionBlock]


def section_markup(section: JobSection) -> SectionMarkup:
    """Return a section with its lines as markup."""
    return SectionMarkup(section.name, section.title, list(_blocks(section)))


def utc_time(moment: datetime, now: datetime) -> str:
    """Return a time of day with its zone, because that of the reader is unknown."""
    return f"{times.clock(moment, now, zone=UTC)} UTC"


def _blocks(section: JobSection) -> Iterator[SectionBlock]:
    for _, group in groupby(section.parts, type):
        parts = list(group)
        yield SectionBlock(
            facts=[(part.label, _line(part.value)) for part in parts if isinstance(part, Fact)],
            entries=[
                EntryMarkup([*map(_line, part.lines)], _path(part, section))
                for part in parts
                if isinstance(part, Entry)
            ],
            texts=[part.text for part in parts if isinstance(part, SectionText)],
        )


def _path(entry: Entry, section: JobSection) -> str:
    name = entry.name.rpartition(" ")[2]
    if section.name == "questions":
        return f"/questions/{name}"
    return f"/jobs/{name}" if section.name in LINKED and name else ""


def _line(line: Line) -> Markup:
    return Markup("").join(map(_span, line))


def _span(span: LineSpan | str) -> Markup:
    if isinstance(span, str):
        return escape(replace_invisible(span))
    text = escape(replace_invisible(span.text))
    if span.when is not None:
        text = time_markup(span.when, span.text)
    if span.url:
        text = Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(span.url, text)
    if span.is_name:
        text = Markup("<strong>{}</strong>").format(text)
    if span.meaning is not None:
        text = Markup('<span class="{}">{}</span>').format(TONES[span.meaning], text)
    return text
