"""Widths of columns from what stands in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def share(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Return the cells of each column: `least`, then a fair share of the room up to `wanted`.

    The narrowest grow first (max-min fairness), so that none is cut beside an empty one. What
    nobody wants is left over; where there is too little room even for `least`, it is kept.
    """
    sizes, left = list(least), room - sum(least)
    while left > 0:
        short = [at for at, size in enumerate(sizes) if size < wanted[at]]
        if not short:
            break
        low = min(sizes[at] for at in short)
        for at in [at for at in short if sizes[at] == low][:left]:
            sizes[at] += 1
            left -= 1
    return sizes
