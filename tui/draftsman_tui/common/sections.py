"""Text rendering of the sections of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    Line,
    LineSpan,
    Reader,
    SectionPart,
    SectionText,
)
from draftsman_tui.terminal import output
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich import text
    from rich.console import RenderableType

    from draftsman.people.policy import Policy

INDENT = "  "
MORE_INDENT = "     "
"""Before the first line of an entry, and before its further lines."""


def reader_at(now: datetime | None = None, policy: Policy | None = None) -> Reader:
    """Return the reader of a terminal; None: now, by the clock of this machine."""
    reader = Reader(now or datetime.now(UTC))
    return reader if policy is None else replace(reader, name_of=policy.name_of)


def line_text(*line: LineSpan | str) -> text.Text:
    """Render a line."""
    return output.line(*(_styled(span) for span in line))


def indented(lines: Iterator[Line]) -> Iterator[text.Text]:
    """Render lines, each behind an indent."""
    yield from (line_text(INDENT, *line) for line in lines)


def part_lines(
    parts: Sequence[SectionPart], hints: Mapping[str, text.Text] = MappingProxyType({})
) -> Iterator[RenderableType]:
    """Render parts of a section, with the values of facts below each other.

    An entry of a name in `hints` ends with that hint.
    """
    width = max((len(part.label) for part in parts if isinstance(part, Fact)), default=0)
    for part in parts:
        match part:
            case Fact(label, value):
                head = styled(f"{INDENT}{label:<{width}}  ", "dim")
                yield output.hanging_indent(output.line(head, line_text(*value)), len(head))
            case Entry(name, (first, *others)):
                yield line_text(INDENT, *first)
                yield from (line_text(MORE_INDENT, *line) for line in others)
                if name in hints:
                    yield output.line("   ", hints[name])
            case SectionText(content):
                yield from (styled(f"{INDENT}{line}") for line in content.splitlines())


def _styled(span: LineSpan | str) -> text.Text:
    if isinstance(span, str):
        return styled(span)
    style = "" if span.meaning is None else STYLES[span.meaning]
    return styled(span.text, f"bold {style}".strip() if span.is_name else style)
