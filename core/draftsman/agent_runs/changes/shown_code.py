"""Code as visible text, a line at a time. Pure.

All that is left out is named: a line that is cut says by how much. So are invisible characters, and
long blanks, which would push the code behind them off the screen.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from draftsman.formats.amounts import counted
from draftsman.formats.invisible import STRICT, braces

MAX_WIDTH: Final = 1000
"""Characters of a line that are shown; the rest is counted."""
WHOLE: Final = sys.maxsize
"""The width of a line that is never cut."""
MAX_BLANKS: Final = 60
"""Blanks in a row that are shown as they are."""
MAX_MARKS: Final = 4
"""Combining marks of a character; more of them cover the lines around."""
_UNSEEN: Final = re.compile(f"(?P<unseen>[{STRICT}]+)|[ \t]{{{MAX_BLANKS + 1},}}")
_NAMED: Final = re.compile(f"[{STRICT}]")


@dataclass(frozen=True, slots=True)
class ShownText:
    """Visible text; `cut` is the number of characters of the original that were left out."""

    text: str
    cut: int = 0


def visible_lines(diff: str) -> str:
    """Return a whole diff as visible text."""
    return "\n".join(shown_code(line, WHOLE).text for line in diff.split("\n"))


def shown_code(text: str, most: int = MAX_WIDTH) -> ShownText:
    """Return a line of code as visible text of about so many characters.

    Invisible characters are escaped, and long blanks replaced by their number. The count of the
    characters that were cut is a part of the text.
    """
    shown = []
    room = most
    length = 0
    for part, visible in _parts(text):
        if len(visible) > room and part == visible:
            shown.append(part[:room])
            length += room
            room = 0
            break
        if not room:
            break
        shown.append(visible)
        length += len(part)
        room = max(0, room - len(visible))
    cut = len(text) - length
    if cut:
        shown.append(f" [… {counted(cut, 'more character')}]")
    return ShownText("".join(shown), cut)


def unseen(line: str) -> dict[str, None]:
    """Return the invisible characters of a line; the line ends of Windows are none."""
    if line.isascii() and line.isprintable():
        return {}
    return dict.fromkeys(_NAMED.findall(line.removesuffix("\r")))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with what is shown of it."""
    end = 0
    for match in _UNSEEN.finditer(text):
        yield from _marks(text[end : match.start()])
        end = match.end()
        if match["unseen"]:
            yield from (
                (run, braces(run)) for _, chars in groupby(match[0]) if (run := "".join(chars))
            )
        else:
            yield match[0], f"[{len(match[0]):,} blanks]"
    yield from _marks(text[end:])


def _marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text with only a few marks on a character, and those beyond."""
    if text.isascii():
        if text:
            yield text, text
        return
    start = 0
    marks = 0
    for at, char in enumerate(text):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks > MAX_MARKS:
            if start < at:
                yield text[start:at], text[start:at]
            yield char, braces(char)
            start = at + 1
    if start < len(text):
        yield text[start:], text[start:]
