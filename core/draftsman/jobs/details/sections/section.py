"""A section of the details of a job, and its parts.

The terminal, the dashboard and pages print the same sections in the same order. A medium
differs only in what it has of its own:

- its markup, and the keys, links or commands with which people answer and open something there;
- the time of day: the zone of a browser is unknown;
- a page has the events newest first, and a link to the earlier ones;
- the terminal shows the newest entries of a long list, with the command for the others;
- a tab of the dashboard has some of the sections, below a header that changes every second.

A text of people or agents may have control characters, which the medium makes visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from draftsman.deliveries.documents.document import Document
from draftsman.errors import CommandHint
from draftsman.events.event import Event
from draftsman.formats import times
from draftsman.ids import account_name
from draftsman.jobs.job import Status
from draftsman.jobs.runs.saved_data import Artifact
from draftsman.jobs.status_display import Meaning, display_of


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A text in a line, and what it means to its reader."""

    text: str
    meaning: Meaning | None = None
    is_name: bool = False
    """Whether it names what the line is about."""
    when: datetime | None = None
    """The time that it says, for a medium that can show that exactly."""
    url: str = ""
    short: str = ""
    """A shorter text, for a medium that shows the whole on request."""


Line = tuple[LineSpan | str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with a label."""

    label: str
    value: Line


@dataclass(frozen=True, slots=True)
class Entry:
    """An element of a list, such as a run: its line, and further lines about it."""

    name: str
    """Its name, unique in the details; it ends with that of the job to open. "": it has none."""
    lines: tuple[Line, ...]
    event: Event | None = None
    """The event that it is: a page shows its details on request."""


@dataclass(frozen=True, slots=True)
class SectionText:
    """A text of several lines with fixed columns."""

    text: str
    document: Document = ()
    """What the text was printed from, for a medium that prints more than text."""
    values: Mapping[str, object] | None = None
    """The same for a text that is the fields of these values."""
    is_markdown: bool = False
    """Whether the text was written for people, and may have marks of Markdown."""


SectionPart = Fact | Entry | SectionText


@dataclass(frozen=True, slots=True)
class JobSection:
    """A section with a title; that of the facts has none."""

    name: str
    title: str
    more: str = ""
    """The command that lists all its entries, for a medium that shows only the newest."""
    newest_last: bool = False
    parts: tuple[SectionPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """What a medium knows of its reader."""

    now: datetime
    """By the clock of the database."""
    responders: Mapping[int, LineSpan] = field(default_factory=dict)
    """Who may answer each open question, by ordinal."""
    time_of_day: Callable[[datetime, datetime], str] = times.clock
    """Writes a time in the time zone of the reader, or as an age where that is unknown."""
    name_of: Callable[[str], str] = account_name
    """Names the person of an account."""
    artifact_url: Callable[[Artifact], str] = lambda _: ""
    """Returns the address at which a medium has an artifact; "" where it has none."""
    types_commands: bool = True
    """Whether the reader has a terminal; else what a command does is a control beside the text."""
    has_keys: bool = False
    """Whether keys beside an entry do what a command does for other readers of a terminal."""
    events_url: str = ""
    """The address at which a medium has all events of the job; "" where it has none."""

    hint: Callable[[CommandHint], str] = str
    """Words a command that helps."""

    def ago(self, when: datetime, meaning: Meaning | None = None) -> LineSpan:
        """Return the time since a moment."""
        return LineSpan(times.ago(when, self.now), meaning, when=when)

    def until(self, when: datetime, meaning: Meaning | None = None) -> LineSpan:
        """Return the time until a moment."""
        return LineSpan(times.until(when, self.now), meaning, when=when)

    def clock(self, when: datetime, meaning: Meaning | None = None) -> LineSpan:
        """Return a time of day."""
        return LineSpan(self.time_of_day(when, self.now), meaning, when=when)


def name(text: str) -> LineSpan:
    """Return the name that a line is about."""
    return LineSpan(text, is_name=True)


def faint(text: str) -> LineSpan:
    """Return a text that matters less than the others."""
    return LineSpan(text, Meaning.NEUTRAL)


def status_span(status: Status, *, denied: bool = False, paused: bool = False) -> LineSpan:
    """Return the status of a job, as `display_of` describes it."""
    display = display_of(status, denied=denied, paused=paused)
    return LineSpan(display.word, display.meaning)


def flat(text: object) -> str:
    """Return a text in a single line."""
    return " ".join(str(text).split())


def plain(line: Line) -> str:
    """Return a line as text."""
    return "".join(span if isinstance(span, str) else span.text for span in line)
