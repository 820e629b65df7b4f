"""Printer of the sections of a job as HTML; all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from markupsafe import Markup

from draftsman.deliveries.documents.document import Command, PicturePart
from draftsman.deliveries.documents.html import HtmlMedium, inert, link_html, print_html, time_html
from draftsman.deliveries.documents.markdown_reader import read_markdown
from draftsman.deliveries.documents.plain import command_of
from draftsman.entities import cells
from draftsman.formats import times
from draftsman.ids import job_name
from draftsman.jobs.details.sections.events import detail_lines
from draftsman.jobs.details.sections.questions import responders
from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    JobSection,
    Line,
    LineSpan,
    Reader,
    SectionPart,
)
from draftsman.jobs.status_display import Meaning

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.jobs.details.job_details import JobDetails
    from draftsman.jobs.runs.saved_data import Artifact
    from draftsman.runtime import Runtime

TONES: Final[Mapping[Meaning, str]] = {
    Meaning.PENDING: "run",
    Meaning.ACTIVE: "run",
    Meaning.WAITING: "wait",
    Meaning.WARNING: "wait",
    Meaning.SUCCESS: "good",
    Meaning.FAILURE: "bad",
    Meaning.DENIED: "denied",
    Meaning.NEUTRAL: "quiet",
}
"""The class of each meaning."""
ROLES: Final[Mapping[str, str]] = {
    "key": "key",
    **{role: TONES[meaning] for meaning, role in cells.ROLES.items()},
}
"""The class of each role of a cell."""


def picture_path(part: PicturePart) -> str:
    """Return the path of a file of a job as a picture; "" for a picture elsewhere."""
    return f"/jobs/{part.job}/pictures/{quote(part.file, safe='')}" if part.file else ""


def artifact_path(artifact: Artifact) -> str:
    """Return the path of the file of an artifact."""
    name = quote(artifact.name, safe="")
    return f"/jobs/{job_name(artifact.job)}/artifacts/{artifact.run}/{name}"


SHOWN: Final = HtmlMedium("a file of the job", command_of, picture=picture_path)
"""How a page shows the values of a result."""
LINKED: Final = frozenset({"retries", "parents", "children"})
"""Sections whose entries are jobs."""


def print_section(section: JobSection) -> Markup:
    """Return the parts of a section."""
    return Markup("\n".join(_blocks(section)))  # noqa: S704 - of escaped texts


def print_line(line: Line) -> Markup:
    """Return a line."""
    return Markup("".join(map(_span, line)))  # noqa: S704 - of escaped texts


_MARKDOWN: Final = re.compile(
    r"^(#{1,6} |```|[-*] |[0-9]+[.)] |> )|\*\*\S[^*]*\*\*|\]\(https?://", re.MULTILINE
)


def print_markdown(text: str) -> Markup:
    """Return a text with marks of Markdown as people read it; "" for a text without any."""
    if not _MARKDOWN.search(text):
        return Markup()
    parts = tuple(read_markdown(text, len(text), Command("")))
    return Markup(print_html(parts, SHOWN))  # noqa: S704 - of escaped texts


def page_reader(rt: Runtime, details: JobDetails) -> Reader:
    """Return the reader of a page, whose time zone is that of shown times."""
    owner = "the owner of the database" if rt.embedded else ""
    asked = responders(details, rt.policy, owner)
    return Reader(
        details.at,
        asked,
        times.clock_with_zone,
        rt.policy.name_of,
        artifact_url=artifact_path,
        types_commands=False,
    )


def _blocks(section: JobSection) -> Iterator[str]:
    for is_fact, group in groupby(section.parts, lambda part: isinstance(part, Fact)):
        parts = "\n".join(_part(part, section) for part in group)
        yield f'<dl class="facts">\n{parts}</dl>' if is_fact else parts


def _part(part: SectionPart, section: JobSection) -> str:
    match part:
        case Fact(label, value):
            return f"<div><dt>{inert(label)}</dt><dd>{print_line(value)}</dd></div>"
        case Entry(_, lines):
            first, *others = map(print_line, lines)
            if path := _path(part, section):
                first = Markup('<a href="{}">{}</a>').format(path, first)
            paragraphs = "\n".join(f"<p>{line}</p>" for line in (first, *others))
            if part.event is not None:
                return _event(first, part.event)
            return f'<div class="entry">{paragraphs}</div>'
        case _ if part.document:
            return f'<div class="shown">{print_html(part.document, SHOWN)}</div>'
        case _:
            text = "\n".join(map(link_html, part.text.split("\n")))
            return (
                f'<div class="code context" role="region" tabindex="0"'
                f' aria-label="{inert(section.title)}"><pre>{text}</pre></div>'
            )


def _event(line: Markup, event: Event) -> str:
    """Return the line of an event, which opens its details."""
    details = inert("\n".join(detail_lines(event)))
    summary = f"<summary><span>{line}</span></summary>"
    return f'<details class="entry">{summary}<pre>{details}</pre></details>'


def _path(entry: Entry, section: JobSection) -> str:
    name = entry.name.rpartition(" ")[2]
    if section.name == "questions":
        return f"/questions/{name}"
    return f"/jobs/{name}" if section.name in LINKED and name else ""


def _span(span: LineSpan | str) -> str:
    if isinstance(span, str):
        return inert(span)
    text = inert(span.text)
    if span.when is not None:
        text = time_html(span.when, span.text)
    if span.url:
        text = link_html(span.url, span.text)
    if span.url.startswith("/"):
        text = f'<a href="{inert(span.url)}">{inert(span.text)}</a>'
    if span.is_name:
        text = f"<strong>{text}</strong>"
    if span.meaning is not None:
        text = f'<span class="{TONES[span.meaning]}">{text}</span>'
    return text
