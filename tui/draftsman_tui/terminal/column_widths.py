"""Allocation of column widths."""

from __future__ import annotations

from collections.abc import Sequence


def share(minimum: Sequence[int], preferred: Sequence[int], available: int) -> list[int]:
    """Allocate a width to each column: `minimum`, plus a fair share up to `preferred`.

    The narrowest columns grow first (max-min fairness). Space beyond all preferred widths is not
    used; minimum widths are kept even if they exceed the available space.
    """
    widths = list(minimum)
    unused = available - sum(minimum)
    while unused > 0:
        growing = [index for index, width in enumerate(widths) if width < preferred[index]]
        if not growing:
            break
        narrowest = min(widths[index] for index in growing)
        for index in [index for index in growing if widths[index] == narrowest][:unused]:
            widths[index] += 1
            unused -= 1
    return widths
