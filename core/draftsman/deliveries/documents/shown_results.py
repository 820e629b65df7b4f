"""Parts of a document for the values of a result that say how they are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.deliveries.documents import document
from draftsman.deliveries.documents.document import (
    LENGTH,
    SHORT,
    Command,
    Document,
    Note,
    Paragraph,
    Part,
    PicturePart,
    RichPart,
    TablePart,
)
from draftsman.deliveries.documents.markdown_reader import read_markdown
from draftsman.formats.truncation import truncate
from draftsman.results import Cell, Link, Markdown, Picture, Shown, Table, shown_values
from draftsman.text import humanize, is_link

MAX_COLUMNS: Final = 20
MAX_CELL: Final = 60
"""Characters of a cell."""
MAX_SOURCE: Final = 1000
"""Characters of the name or the address of a picture."""
MAX_VALUES: Final = 20
"""Values of a result that are shown."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a value is shown."""

    rows: int
    text: int
    """Characters of a text."""


MESSAGE: Final = Room(20, LENGTH)
DETAILS: Final = Room(200, 20_000)


def shown_result(
    result: Mapping[str, Any], job: str, full: Command, room: Room = MESSAGE
) -> Document:
    """Return the values of a result of a job that say how they are shown; `full` shows all."""
    parts: list[Part | RichPart] = []
    values = [*shown_values(result).items()]
    for name, value in values[:MAX_VALUES]:
        parts += _parts(humanize(name), value, job, full, room)
    if (hidden := len(values) - MAX_VALUES) > 0:
        parts.append(Note((f"… and {hidden:,} more values: ", full)))
    return tuple(parts)


def _parts(
    name: str, value: Shown, job: str, full: Command, room: Room
) -> Iterator[Part | RichPart]:
    label = _line(value.text, SHORT) if isinstance(value, Link | Picture) else ""
    label = label or name
    match value:
        case Markdown(text):
            yield from _heading(name)
            yield from read_markdown(text, room.text, full)
        case Table():
            yield from _heading(name)
            yield _table(value, full, room)
        case Picture(source):
            place = {"url" if is_link(source) else "file": _line(source, MAX_SOURCE)}
            yield PicturePart(label, job, **place)
        case Link(url):
            yield Paragraph((f"{label}: " if label else "", document.Link(url)), LENGTH)


def _heading(name: str) -> Iterator[Note]:
    if name:
        yield Note((f"{name}:",))


def _table(table: Table, full: Command, room: Room) -> TablePart:
    columns = [_cell(name) for name in table.columns[:MAX_COLUMNS]]
    if (hidden := len(table.columns) - MAX_COLUMNS) > 0:
        columns.append(f"… {hidden:,} more")
    rows = ([*map(_cell, row[:MAX_COLUMNS])] for row in table.rows[: room.rows])
    filled = tuple((*row, *[""] * (len(columns) - len(row))) for row in rows)
    return TablePart(tuple(columns), filled, len(table.rows), room.text, full)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _line(str(value), MAX_CELL)


def _line(text: str, most: int) -> str:
    return truncate(" ".join(text.split()), most)
