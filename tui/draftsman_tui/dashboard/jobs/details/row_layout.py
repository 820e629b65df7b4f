"""Row layout of the job screen: rows of cells wrapped to a width, grouped into items.

Also makes control characters of untrusted text visible, and truncates long text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from draftsman.entities.cells import ROLES, Cell
from draftsman.jobs.details.sections.section import Line, LineSpan
from draftsman_tui.terminal.output import plain

Row = tuple[Cell, ...]
MAX_ROWS: Final = 12
"""Maximum rows of a wrapped line."""
MAX_CHARACTERS_PER_CELL: Final = 4
"""Limit for zero-width characters, which could pile up in a row."""
TAB: Final = 4


@dataclass(frozen=True, slots=True)
class Item:
    """Rows of one entry in a tab; `key` is its stable id, which is also copied."""

    key: str
    rows: tuple[Row, ...]
    title_rows: int = 0
    """Number of its first rows that are the title of the items from here on."""


def text_row(text: str, role: str = "") -> Row:
    """Return a row of untrusted text."""
    return (Cell(visible(text), role),)


def visible(text: str) -> str:
    """Return a line with its control characters neutralized."""
    return plain(text).expandtabs(TAB)


def wrap_row(row: Row, width: int, hang: int = 0, most: int = MAX_ROWS) -> list[Row]:
    """Wrap a row to `width` cells, indenting continuation rows by `hang`.

    More than `most` rows are truncated, with the number of omitted characters.
    """
    text = "".join(cell.text for cell in row)
    if len(text) <= width and text.isascii():
        return [row]
    rows: list[Row] = []
    for start, end in _breaks(text, width, hang):
        if len(rows) == most:
            rows[-1] = (*rows[-1][:-1], Cell(f"… {len(text) - start:,} more characters", "dim"))
            break
        lead = (Cell(" " * hang),) if start and hang else ()
        rows.append((*lead, *_slice(row, start, end)))
    return rows or [row]


def lines(text: str, width: int, lead: str = "", role: str = "") -> Iterator[Row]:
    """Yield the wrapped lines of a text, each prefixed with `lead`."""
    for line in text.strip("\n").split("\n"):
        yield from wrap_row((Cell(lead + visible(line), role),), width, len(lead))


def row_of(line: Line) -> Row:
    """Return a line as cells, without empty spans."""
    cells: list[Cell] = []
    for span in line:
        text = span if isinstance(span, str) else span.text
        role = _role(span)
        if cells and cells[-1].role == role:
            cells[-1] = Cell(cells[-1].text + visible(text), role)
        elif text:
            cells.append(Cell(visible(text), role))
    return tuple(cells)


def section(key: str, title: str, rows: Sequence[Row]) -> list[Item]:
    """Return rows under a title, or nothing if there are none."""
    return [Item(key, ((), (Cell(title, "head"),), *rows))] if rows else []


def note(text: str, width: int) -> Item:
    """Return a message as an item without a key."""
    return Item("", tuple(wrap_row((Cell(text, "dim"),), width)))


def contains_text(item: Item, words: str) -> bool:
    """Return whether an item contains a text, ignoring case."""
    needle = words.casefold()
    return any(needle in "".join(cell.text for cell in row).casefold() for row in item.rows)


def _breaks(text: str, width: int, hang: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each row, breaking between words if possible."""
    start = 0
    room = max(1, width)
    while start < len(text):
        end = _fitting_end(text, start, room)
        if end < len(text) and text[end] != " ":
            space = text.rfind(" ", start, end)
            if space - start > room // 2:
                end = space
        yield start, end
        start = end + (text[end : end + 1] == " ")
        room = max(1, width - hang)


def _fitting_end(text: str, start: int, room: int) -> int:
    """Return the end of the longest piece that fits, with at least one character."""
    piece = text[start : start + room]
    if piece.isascii():
        return start + len(piece)
    cells = 0
    end = start
    for char in text[start : start + MAX_CHARACTERS_PER_CELL * room]:
        cells += cell_len(char)
        if cells > room and end > start:
            break
        end += 1
    return end


def _slice(row: Row, start: int, end: int) -> Iterator[Cell]:
    at = 0
    for cell in row:
        piece = cell.text[max(0, start - at) : max(0, end - at)]
        if piece:
            yield Cell(piece, cell.role)
        at += len(cell.text)


def _role(span: LineSpan | str) -> str:
    if isinstance(span, str):
        return ""
    if span.meaning is not None:
        return ROLES[span.meaning]
    return "head" if span.is_name else ""
