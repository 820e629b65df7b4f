"""Bars of text for a series of numbers."""

from __future__ import annotations

from draftsman.formats.sparklines import sparkline


def test_a_sparkline_has_a_bar_for_each_value() -> None:
    assert sparkline([0, 1, 8, None]) == "▁▁█·"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
