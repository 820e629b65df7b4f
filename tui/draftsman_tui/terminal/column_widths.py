"""Allocation of column widths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


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


def share_alike(minimum: Sequence[int], preferred: Sequence[int], available: int) -> list[int]:
    """Allocate widths like `share`, but cut the columns that are too wide alike.

    Two thirds of the space beyond the minimum widths are shared, so that short columns are not cut.
    The rest is given in proportion to what is still missing.
    """
    space = max(0, available - sum(minimum))
    widths = share(minimum, preferred, sum(minimum) + space * 2 // 3)
    missing = [max(0, most - width) for most, width in zip(preferred, widths, strict=True)]
    rest = min(space - sum(widths) + sum(minimum), sum(missing))
    ends = [rest * end // max(1, sum(missing)) for end in accumulate(missing, initial=0)]
    return [width + end - start for width, (start, end) in zip(widths, pairwise(ends), strict=True)]
