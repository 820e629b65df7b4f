"""Series of numbers as bars of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(heights: Sequence[float | None]) -> str:
    """Return a bar for each height, relative to the highest; a dot for None."""
    top = max((height for height in heights if height is not None), default=0)
    return "".join("·" if height is None else _bar(height, top) for height in heights)


def _bar(height: float, top: float) -> str:
    return _BARS[max(0, round(8 * height / top) - 1) if top > 0 else 0]
