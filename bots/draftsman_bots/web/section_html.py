"""Printer of the sections of a job as HTML; all text is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
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
from draftsman.jobs.details.sections.events import detail_values
from draftsman.jobs.details.sections.questions import responders
from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    JobSection,
    Line,
    LineSpan,
    Reader,
    SectionPart,
    SectionText,
)
from draftsman.jobs.retries import ErrorClass, error_class_text
from draftsman.jobs.status_display import Meaning
from draftsman.text import humanize, is_link, text_digest

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
_NAME: Final = re.compile(r"(?<![\w./#-])D-[1-9][0-9]{0,17}(?:/[1-9][0-9]{0,8})?(?![\w/-]|\.[0-9])")
"""The name of a job or a question in a text; that of a run, `D-142.1`, is none."""


def name_path(name: str) -> str:
    """Return the path of the page of a job or a question; "" without a name."""
    if not name:
        return ""
    return f"/questions/{name}" if "/" in name else f"/jobs/{name}"


def link_names(html: str) -> str:
    """Return escaped text, in which each name of a job or a question leads to its page."""
    return _NAME.sub(lambda match: f'<a href="{name_path(match[0])}">{match[0]}</a>', html)


def print_section(section: JobSection) -> Markup:
    """Return the parts of a section."""
    return Markup("\n".join(_blocks(section)))  # noqa: S704 - of escaped texts


def print_line(line: Line) -> Markup:
    """Return a line, in which each name of a job or a question leads to its page."""
    return Markup("".join(map(_span, line)))  # noqa: S704 - of escaped texts


_MARKDOWN: Final = re.compile(
    r"^(#{1,6} |```|[-*] |[0-9]+[.)] |> )|\*\*\S[^*]*\*\*|\]\(https?://|`[^`\s][^`]*`", re.MULTILINE
)
_ELEMENT: Final = re.compile(r"(<(?P<closes>/?)(?P<tag>\w+)[^>]*>)|(?P<text>[^<]+)")
_INLINE: Final = re.compile(
    r"`(?P<code>[^`\n]+)`|(?P<url>https?://(?:(?!&(?:quot|lt|gt|\#x27);)[^\s<`])+)"
)
"""Code and addresses in escaped text."""
_CODE_BLOCK: Final = re.compile(r'(<pre class="code">)(.*?)(</pre>)', re.DOTALL)
SHOWN_CODE: Final = 12
"""Lines of a block of code in a text; a longer one is folded."""
MAX_DEPTH: Final = 6
"""Levels of a value that are lists of names; deeper values are JSON."""
MAX_VALUES: Final = 200
"""Values of a mapping or a list that a page shows."""


def print_markdown(text: str) -> Markup:
    """Return a text with marks of Markdown as people read it; "" for a text without any."""
    if not _MARKDOWN.search(text):
        return Markup()
    parts = tuple(read_markdown(text, len(text), Command("")))
    html = _CODE_BLOCK.sub(_folded, _with_inline(print_html(parts, SHOWN)))
    return Markup(html)  # noqa: S704 - of escaped texts


def print_prose(text: str) -> Markup:
    """Return a text that a person or an agent wrote, as Markdown where it has marks of it."""
    if shown := print_markdown(text):
        return Markup('<div class="shown">{}</div>').format(shown)
    lines = "\n".join(_with_inline(inert(line)) for line in text.split("\n"))
    return Markup(f'<p class="shown written">{lines}</p>')  # noqa: S704 - of escaped texts


def _with_inline(html: str) -> str:
    """Return escaped text with its code and addresses as elements; links and blocks stay."""
    shown = []
    depth = 0
    for match in _ELEMENT.finditer(html):
        if match["tag"] in ("a", "pre", "code"):
            depth += -1 if match["closes"] else 1
        text = match["text"]
        shown.append(_INLINE.sub(_inline, text) if text and not depth else match[0])
    return "".join(shown)


def _inline(match: re.Match[str]) -> str:
    if match["code"]:
        return f"<code>{match['code']}</code>"
    url = unescape(match["url"].rstrip(".,;:!?)'"))
    rest = unescape(match["url"]).removeprefix(url)
    return link_html(url) + inert(rest) if is_link(url) else match[0]


def _folded(match: re.Match[str]) -> str:
    """Return a block of code, folded if it is long."""
    lines = match[2].count("\n") + 1
    if lines <= SHOWN_CODE:
        return match[0]
    return f'<details class="fold"><summary>Code, {lines:,} lines</summary>{match[0]}</details>'


def print_values(values: Mapping[str, object]) -> Markup:
    """Return the fields of a payload, a result or an event, with words for names."""
    return Markup(_mapping(values))  # noqa: S704 - of escaped texts


def _mapping(values: Mapping[str, object], depth: int = 0) -> str:
    rows = "\n".join(
        f"<div><dt>{inert(_words(name))}</dt><dd>{_value(name, value, depth + 1)}</dd></div>"
        for name, value in [*values.items()][:MAX_VALUES]
    )
    return f'<dl class="facts values">\n{rows}</dl>{_hidden(len(values))}'


def _words(name: str) -> str:
    return humanize(str(name)).replace("-", " ").strip(": ") or str(name)


def _value(name: str, value: object, depth: int) -> str:
    match value:
        case dict() | list() | tuple() if value and depth > MAX_DEPTH:
            return inert(json.dumps(value, ensure_ascii=False, default=str))
        case dict() if value:
            return _mapping(value, depth)
        case list() | tuple() if any(isinstance(item, dict | list | tuple) for item in value):
            items = "".join(
                f"<li>{_value('', item, depth + 1)}</li>" for item in value[:MAX_VALUES]
            )
            return f'<ul class="items">{items}</ul>{_hidden(len(value))}'
        case list() | tuple() if value:
            return inert(", ".join(map(str, value[:MAX_VALUES]))) + _hidden(len(value))
        case str() if name == "error_class" and value in set(ErrorClass):
            return inert(error_class_text(value))
        case str() if "\n" in value:
            return f'<div class="code context"><pre>{inert(value)}</pre></div>'
        case str():
            return link_html(value) or '""'
        case bool():
            return "yes" if value else "no"
        case None | dict() | list() | tuple():
            return "none"
    return inert(str(value))


def _hidden(count: int) -> str:
    return f'<p class="hint">{count - MAX_VALUES:,} more</p>' if count > MAX_VALUES else ""


def owner_of(rt: Runtime) -> str:
    """Return what the owner of an embedded database is called; "" for another database."""
    return (rt.policy.owner or rt.policy.login or "") if rt.embedded else ""


def page_reader(rt: Runtime, details: JobDetails) -> Reader:
    """Return the reader of a page, whose time zone is that of shown times."""
    asked = responders(details, rt.policy, owner_of(rt))
    return Reader(
        details.at,
        asked,
        times.clock_with_zone,
        rt.policy.name_of,
        artifact_url=artifact_path,
        types_commands=False,
        events_url=f"/jobs/{details.job.name}/events",
    )


def _blocks(section: JobSection) -> Iterator[str]:
    parts = section.parts[::-1] if section.name == "events" else section.parts
    for is_fact, group in groupby(parts, lambda part: isinstance(part, Fact)):
        shown = "\n".join(_part(part, section) for part in group)
        yield f'<dl class="facts">\n{shown}</dl>' if is_fact else shown


def _part(part: SectionPart, section: JobSection) -> str:
    match part:
        case Fact(label, value):
            return f"<div><dt>{inert(label)}</dt><dd>{print_line(value)}</dd></div>"
        case Entry(_, lines):
            first, *others = map(print_line, lines)
            paragraphs = "\n".join(f"<p>{line}</p>" for line in (first, *others))
            if part.event is not None:
                return print_event(first, part.event)
            return f'<div class="entry">{paragraphs}</div>'
        case SectionText() if part.document:
            return f'<div class="shown">{print_html(part.document, SHOWN)}</div>'
        case SectionText(is_markdown=True):
            return print_prose(part.text)
        case SectionText(values=dict() as values):
            return print_values(values)
        case _:
            text = "\n".join(map(link_html, part.text.split("\n")))
            return (
                f'<div class="code context" role="region" tabindex="0"'
                f' aria-label="{inert(section.title)}"><pre>{text}</pre></div>'
            )


def print_event(line: Markup, event: Event) -> Markup:
    """Return the line of an event, which opens its details."""
    return Markup(
        '<details class="entry event" id="event-{}"><summary><span>{}</span></summary>{}</details>'
    ).format(event.id, line, print_values(detail_values(event)))


def _span(span: LineSpan | str) -> str:
    if isinstance(span, str):
        return link_names(inert(span))
    text = link_names(inert(span.text))
    if span.when is not None:
        text = time_html(span.when, span.text)
    if span.short:
        id = f"more-{text_digest(span.text)[:12]}"
        text = (
            f'<button class="fold" type="button" popovertarget="{id}">{inert(span.short)}</button>'
            f'<span class="folded" id="{id}" popover>{text}</span>'
        )
    if span.url:
        text = link_html(span.url, span.text)
    if span.url.startswith("/"):
        text = f'<a href="{inert(span.url)}">{inert(span.text)}</a>'
    if span.is_name:
        text = f"<strong>{text}</strong>"
    if span.meaning is not None:
        text = f'<span class="{TONES[span.meaning]}">{text}</span>'
    return text
