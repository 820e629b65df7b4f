"""Versions of a document for a medium: in words, and shorter ones. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import accumulate
from typing import Final, TypeVar

from draftsman.deliveries.documents.document import (
    LENGTH,
    Choices,
    Code,
    Command,
    Document,
    Link,
    Note,
    Paragraph,
    Part,
    PicturePart,
    Quote,
    RichPart,
    TablePart,
    descriptions_at,
)

Piece = TypeVar("Piece")
TOO_LONG: Final = "The message is too long for this place, and the rest is left out."
SHRUNK: Final = 2500
"""Characters of a text in the shortest version of a document."""
_NUMBER: Final = re.compile(r"-?[0-9.,]+(e[+-]?[0-9]+)?%?")


def in_words(document: Iterable[Part | RichPart]) -> Iterator[Part]:
    """Yield the parts of a document for a medium without tables and pictures.

    A table has fixed columns there, and a picture is named.
    """
    for part in document:
        match part:
            case TablePart():
                yield from _table(part)
            case PicturePart():
                yield picture_text(part)
            case _:
                yield part


def picture_text(part: PicturePart) -> Paragraph:
    """Return what a picture shows, and where it is."""
    files = Command(f"draftsman artifacts list {part.job}")
    place = (Link(part.url),) if part.url else (f"{part.file}, a file of the job: ", files)
    return Paragraph((f"{part.text}: " if part.text else "", *place), LENGTH)


def _table(table: TablePart) -> Iterator[Part]:
    lines = table_lines(table.columns, table.rows)
    lengths = accumulate(len(line) + 1 for line in lines)
    fitting = lines[: max(1, sum(length <= table.most for length in lengths))]
    yield Code("\n".join(fitting), table.most, full=table.full, is_table=True)
    if notice := more_rows(table, len(fitting) - 1):
        yield notice


def more_rows(table: TablePart, shown: int) -> Note | None:
    """Return the notice of the rows that are not shown; None for none."""
    hidden = table.total - shown
    return Note((f"… and {hidden:,} more rows: ", table.full)) if hidden > 0 else None


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, first that of its columns; numbers are at the right."""
    lined_up = [_lined_up(*column) for column in zip(columns, *rows, strict=True)]
    return ["  ".join(line).rstrip() for line in zip(*lined_up, strict=True)]


def _lined_up(head: str, *cells: str) -> list[str]:
    width = max(map(text_width, (head, *cells)))
    is_number = any(cells) and all(_NUMBER.fullmatch(cell) for cell in cells if cell)
    lines = [head + " " * (width - text_width(head))]
    for cell in cells:
        blanks = " " * (width - text_width(cell))
        lines.append(blanks + cell if is_number else cell + blanks)
    return lines


def text_width(text: str) -> int:
    """Return the columns of a text in a terminal."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


class Fold(Enum):
    """Versions of a document, from complete to the shortest."""

    NOTHING = 0
    CODE = 1
    DESCRIPTIONS = 2
    TEXTS = 3


def folded(document: Document, fold: Fold) -> Iterator[Part]:
    """Yield a version of a document: code folds first, then descriptions of choices, then texts."""
    for part in in_words(document):
        match part:
            case Code(folds=True, full=full) if fold.value >= Fold.CODE.value:
                if full is not None:
                    yield Note(("The context is too long for this message. To read it: ", full))
            case Choices(items=items) if fold.value >= Fold.DESCRIPTIONS.value:
                yield replace(part, items=tuple(replace(item, description="") for item in items))
                if notice := descriptions_at(part):
                    yield Note(notice)
            case Paragraph() | Quote() if fold is Fold.TEXTS:
                yield replace(part, most=min(part.most, SHRUNK))
            case _:
                yield part


def fit(
    document: Document,
    print_parts: Callable[[Sequence[Part], Fold], Sequence[Piece]],
    fits: Callable[[Sequence[Piece]], bool],
    stays: Callable[[Piece], bool],
    full: Command,
) -> list[Piece]:
    """Return the most complete version of a document that fits its medium.

    `print_parts` prints parts as pieces. From the shortest version the last pieces go, except for
    the first one and those that must stay, such as controls; in their place is the notice that
    `full` shows all.
    """
    pieces: list[Piece] = []
    for fold in Fold:
        pieces = [*print_parts([*folded(document, fold)], fold)]
        if fits(pieces):
            return pieces
    notice = print_parts([Note((f"{TOO_LONG} To read it: ", full))], Fold.TEXTS)
    removable = [index for index, piece in enumerate(pieces) if index and not stays(piece)]
    for index in reversed(removable):
        del pieces[index]
        shorter = [*pieces[:index], *notice, *pieces[index:]]
        if fits(shorter):
            return shorter
    return pieces
