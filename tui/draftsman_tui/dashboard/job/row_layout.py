"""What is drawn of a job: rows of cells, wrapped to a width; items are rows that belong together.

What people, programs and agents said comes through here: made visible, cut where it is endless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from draftsman_tui.common.output import plain
from draftsman_tui.dashboard.resource import Cell

if TYPE_CHECKING:
    from rich.text import Text

Row = tuple[Cell, ...]
MOST: Final = 12
"""Rows of the screen that one line of text takes at most."""
CROWD: Final = 4
"""Characters of a row for each of its cells: some take no room, and may be piled up."""
TAB: Final = 4
_ROLES: Final = {
    "dim": "dim",
    "bold": "head",
    "bold underline": "head",
    "green": "good",
    "red": "bad",
    "bold red": "bad",
    "yellow": "asks",
    "bold yellow": "asks",
    "cyan": "busy",
    "bold cyan": "busy",
    "blue": "calm",
    "magenta": "warns",
}
"""The roles of the styles in which the command line prints."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of a part. `key` is what stays the same of it, and what is copied."""

    key: str
    rows: tuple[Row, ...]


def text_row(text: str, role: str = "") -> Row:
    """Return one line of whatever was said."""
    return (Cell(visible(text), role),)


def visible(text: str) -> str:
    """Return a line so that nothing in it is obeyed."""
    return plain(text).expandtabs(TAB)


def row_of(text: Text) -> Row:
    """Return what the command line prints on a line, its styles as roles."""
    ends = {0, len(text), *(place for span in text.spans for place in (span.start, span.end))}
    cuts = sorted(place for place in ends if place <= len(text))
    cells = []
    for start, end in pairwise(cuts):
        styles = [str(span.style) for span in text.spans if span.start <= start < span.end]
        style = next((one for one in reversed(styles) if one), str(text.style))
        cells.append(Cell(visible(text.plain[start:end]), _ROLES.get(style, "")))
    return tuple(cells)


def wrap_row(row: Row, width: int, hang: int = 0, most: int = MOST) -> list[Row]:
    """Return the row as rows of at most `width` cells, the later ones `hang` cells further in.

    What takes more than `most` rows is cut, and says how much is left out.
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
    """Yield the lines of a text, each behind `lead` and wrapped."""
    for line in text.strip("\n").split("\n"):
        yield from wrap_row((Cell(lead + visible(line), role),), width, len(lead))


def section(key: str, title: str, rows: Sequence[Row]) -> list[Item]:
    """Return rows under a title, nothing where there are none."""
    return [Item(key, ((), (Cell(title, "head"),), *rows))] if rows else []


def note(text: str, width: int) -> Item:
    """Return something that we say ourselves where there is nothing else."""
    return Item("", tuple(wrap_row((Cell(text, "dim"),), width)))


def contains_text(item: Item, words: str) -> bool:
    """Return whether the words are in an item, whatever the case."""
    wanted = words.casefold()
    return any(wanted in "".join(cell.text for cell in row).casefold() for row in item.rows)


def _breaks(text: str, width: int, hang: int) -> Iterator[tuple[int, int]]:
    """Yield where each row starts and ends: between words, else where it is full."""
    start, room = 0, max(1, width)
    while start < len(text):
        end = _fitting(text, start, room)
        if end < len(text) and text[end] != " ":
            space = text.rfind(" ", start, end)
            if space - start > room // 2:
                end = space
        yield start, end
        start = end + (text[end : end + 1] == " ")
        room = max(1, width - hang)


def _fitting(text: str, start: int, room: int) -> int:
    """Return where the longest piece ends that has room; it has one character at least."""
    piece = text[start : start + room]
    if piece.isascii():
        return start + len(piece)
    used, end = 0, start
    for char in text[start : start + CROWD * room]:
        used += cell_len(char)
        if used > room and end > start:
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
