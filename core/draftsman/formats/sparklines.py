"""Series of numbers as bars of text, in a line or as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(heights: Sequence[float | None]) -> str:
    """Return a bar for each height, relative to the highest; a dot for None."""
    top = max((height for height in heights if height is not None), default=0)
    return "".join("·" if height is None else _bar(height, top) for height in heights)


def column_chart(
    heights: Sequence[float | None], rows: int, *, bar_width: int = 1
) -> tuple[str, ...]:
    """Return the rows of a chart from 0 to the highest value; a dot for None, blank for 0.

    A value above 0 has an eighth of a row at least.
    """
    top = max((height for height in heights if height is not None), default=0)
    eighths = [
        None if height is None else max(1, round(8 * rows * height / top)) if height > 0 else 0
        for height in heights
    ]
    lines = []
    for row in reversed(range(rows)):
        cells = (_cell(eighth, row) * bar_width for eighth in eighths)
        lines.append("".join(cells))
    return tuple(lines)


def _cell(eighths: int | None, row: int) -> str:
    if eighths is None:
        return " " if row else "·"
    filled = min(8, max(0, eighths - 8 * row))
    return _BARS[filled - 1] if filled else " "


def _bar(height: float, top: float) -> str:
    return _BARS[max(0, round(8 * height / top) - 1) if top > 0 else 0]
