"""Lines of the entries of a log, with Markdown and folded parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from draftsman.agent_runs.activity.activity import ActivityKind
from draftsman.agent_runs.activity.log_entries import OUTPUT, LogEntry, entry_meaning
from draftsman.deliveries.documents.document import Code, Command, Paragraph, Strong
from draftsman.deliveries.documents.markdown_reader import read_markdown
from draftsman.jobs.details.sections.section import Line, LineSpan, name

T = TypeVar("T")
CODE_INDENT: Final = "    "
MAX_MARKDOWN: Final = 100_000
"""Characters of a message; more are a plain text."""
FOLDED_LINES: Final[Mapping[str, int]] = {OUTPUT: 40, ActivityKind.THOUGHT: 6}
"""Lines of which more are folded where an agent works, by kind of the entry."""
_KEPT: Final = 4
"""A folded text shows this share of the lines at its beginning and at its end, and two at least."""


def entry_line(entry: LogEntry, text: str) -> Line:
    """Return a line of an entry that is no Markdown, by what it means."""
    return (LineSpan(text, entry_meaning(entry), is_name=entry.kind == ActivityKind.PLAN),)


def markdown_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text in Markdown: headings and strong words are names."""
    if len(text) > MAX_MARKDOWN:
        yield from ((line,) for line in text.splitlines())
        return
    is_first = True
    for part in read_markdown(text, len(text), Command("")):
        if not is_first:
            yield ()
        is_first = False
        match part:
            case Code(content):
                yield from ((CODE_INDENT + line,) for line in content.split("\n"))
            case Paragraph(spans):
                yield from _paragraph(spans)


def fold(lines: Sequence[T], most: int) -> tuple[Sequence[T], int, Sequence[T]]:
    """Return the beginning, the number of folded lines, and the end of a long text."""
    if len(lines) <= most:
        return lines, 0, ()
    kept = max(2, most // _KEPT)
    return lines[:kept], len(lines) - 2 * kept, lines[-kept:]


def folded_title(text: str, most: int) -> str:
    """Return a line within a length, with the number of folded characters."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … {len(text) - most:,} more characters"


def _paragraph(spans: Sequence[object]) -> Iterator[Line]:
    line: list[LineSpan | str] = []
    for span in spans:
        first, *others = str(span).split("\n")
        for nth, words in enumerate((first, *others)):
            if nth:
                yield tuple(line)
                line = []
            if words:
                line.append(name(words) if isinstance(span, Strong) else words)
    yield tuple(line)
