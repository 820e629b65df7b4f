"""Charts of statistics: from 0 to the highest value, with an axis, in any width."""

from __future__ import annotations

from typing import Any

from draftsman.formats.sparklines import column_chart
from draftsman.jobs.details.throughput import BARS, Period, Throughput, ThroughputGroup
from draftsman_tui.dashboard.stats.charts import charts
from tests.support.cases import cases


@cases(
    ("heights", "rows", "expected"),
    [
        ((0, 1, 2, 4), 1, (" ▂▄█",)),
        ((0, 4, 8, 16), 2, ("   █", " ▄██")),
        ((None, 1, 1000), 2, ("  █", "·▁█")),
        ((None, 0, None), 2, ("   ", "· ·")),
        ((), 2, ("", "")),
    ],
)
def test_a_chart_begins_at_0_and_shows_each_value_above(
    heights: tuple[float | None, ...], rows: int, expected: tuple[str, ...]
) -> None:
    assert column_chart(heights, rows) == expected
    assert column_chart(heights, rows, bar_width=2) == tuple(
        "".join(char * 2 for char in line) for line in expected
    )


def _row(**fields: Any) -> Throughput:
    bars: list[int | None] = [None, *range(BARS - 1)]
    times = [None, None, *(float(60 * nth) for nth in range(BARS - 2))]
    given: dict[str, Any] = {"bars": bars, "wait_bars": times, "run_bars": [None] * BARS} | fields
    return Throughput(
        period=Period.DAY, by=ThroughputGroup.QUEUE, value="work\u200b", finished=9, failed=0,
        covered=86_400.0, wait_p50=1.0, wait_p95=1.0, run_p50=1.0, run_p95=1.0, **given,
    )  # fmt: skip


@cases("width", [60, 80, 120, 200, 400])
def test_three_charts_have_heads_and_axes_in_any_width(width: int) -> None:
    lines = ["".join(cell.text for cell in row) for row in charts(_row(), width, 3)]
    assert lines[0] == r"queue work\u{200b}  last day, a bar is 1 h; times are medians"
    assert lines[1].split("  ")[0] == "ended: up to 22"
    assert "waited: up to 21 min" in lines[1]
    assert "ran: none" in lines[1]
    assert len(lines) == 2 + 3 + 2
    assert {len(line) for line in lines[1:]} == {max(width - (width - 4) % 3, 3 * BARS + 4)}
    assert lines[-1].count("24 h ago") == lines[-1].count("now") == 3
