"""The sections of a job as items of a tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Final

from draftsman.entities.cells import Cell
from draftsman.formats.invisible import one_line
from draftsman.jobs.details.sections.order import sections
from draftsman.jobs.details.sections.request import request_parts
from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    JobSection,
    SectionPart,
    SectionText,
)
from draftsman.jobs.job import Job
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, lines, row_of, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot

MAX_LENGTH: Final = 100_000
"""Maximum characters of a text to show."""
INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class SectionLayout:
    """How the parts of a section are placed."""

    job: Job
    width: int
    lead: str
    label_width: int
    wraps: bool

    def rows(self, row: Row, hang: int) -> list[Row]:
        """Return a row as it fits the width."""
        return wrap_row(row, self.width, hang) if self.wraps else [row]


def section_items(
    snapshot: JobSnapshot,
    width: int,
    now: datetime,
    *names: str,
    titled: bool = True,
    spaced: bool = False,
    wraps: bool = True,
    hint: Callable[[str], str] = lambda name: "",
) -> list[Item]:
    """Return the items of the sections of these names: of each entry, text and group of facts.

    `hint` gives the keys for an entry of a name. Entries that are `spaced` end with a blank row,
    and without `wraps` a line is a row.
    """
    items: list[Item] = []
    for section in sections(snapshot.details, snapshot.reader(now), names):
        lead = INDENT if titled and section.title else ""
        labels = [len(part.label) for part in section.parts if isinstance(part, Fact)]
        layout = SectionLayout(snapshot.job, width, lead, max(labels, default=0), wraps)
        title: tuple[Row, ...] = ((), (Cell(section.title, "head"),)) if lead else ()
        for key, parts in groupby(section.parts, partial(_key, section)):
            rows = [row for part in parts for row in _rows(part, layout)]
            if key and (keys := hint(key)):
                rows.append((Cell(f"{lead}{INDENT}{keys}", "key"),))
            if spaced:
                rows.append(())
            items.append(Item(key, (*title, *rows), title_rows=len(title)))
            title = ()
    return items


def bounded(text: str, job: Job) -> str:
    """Truncate a long text, with the command that shows the rest."""
    if len(text) <= MAX_LENGTH:
        return text
    hidden = len(text) - MAX_LENGTH
    return f"{text[:MAX_LENGTH]}\n… {hidden:,} more characters: draftsman show {job.name} --json"


def request_text(job: Job) -> str:
    """Return the title, the text and the payload of a request."""
    texts = [part.text for part in request_parts(job)]
    return bounded("\n\n".join([one_line(job.title), *texts]), job)


def _key(section: JobSection, part: SectionPart) -> str:
    """Return the key of the item of a part; parts without a name beside each other share it."""
    match part:
        case Entry(name):
            return name
        case SectionText():
            return section.name
        case Fact():
            return "" if section.title else section.name


def _rows(part: SectionPart, layout: SectionLayout) -> Iterator[Row]:
    lead = layout.lead
    match part:
        case Fact(label, value):
            head = Cell(f"{lead}{label:<{layout.label_width}}  ", "dim")
            yield from layout.rows((head, *row_of(value)), len(head.text))
        case SectionText(text):
            yield from lines(bounded(text, layout.job), layout.width, lead)
        case Entry(lines=(first, *others)):
            more = lead + INDENT
            yield from layout.rows(row_of((lead, *first)), len(more) + len(INDENT))
            for line in others:
                yield from layout.rows(row_of((more, *line)), len(more) + len(INDENT))
