"""Widths of the columns that are cut."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman_tui.terminal.column_widths import share_alike
from tests.support.cases import cases


@cases(
    "minimum, preferred, available, widths",
    [
        ([8, 8], [20, 30], 60, [20, 30]),  # all fit
        ([8, 8], [20, 60], 60, [20, 40]),  # a short one is whole
        ([8, 8], [60, 60], 44, [22, 22]),
        ([8, 8], [30, 60], 50, [21, 29]),  # both are cut: the longer text has more
        ([8, 8, 8], [23, 30, 70], 60, [17, 18, 25]),
        ([4, 5, 8, 8], [6, 5, 40, 80], 50, [6, 5, 17, 22]),  # numbers are whole
        ([8, 8], [30, 60], 10, [8, 8]),  # minimums are kept
        ([10, 8], [5, 60], 30, [10, 20]),
    ],
)
def test_columns_share_the_width(
    minimum: Sequence[int], preferred: Sequence[int], available: int, widths: list[int]
) -> None:
    assert share_alike(minimum, preferred, available) == widths
