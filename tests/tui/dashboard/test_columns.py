"""How columns are laid out: what fits, what is to the right, and wide characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.columns import fit, gap, layout, most


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [80, 100, 120, 140, 200, 400])
def test_what_is_shown_fills_the_line_and_no_more(view: str, width: int) -> None:
    found = layout(VIEWS[view].columns, width).placed
    end = found[-1].x + found[-1].size + gap(width)
    assert end <= width
    assert end >= width - 2 * gap(width)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("chosen", [False, True])
def test_every_column_is_come_to(view: str, width: int, chosen: bool) -> None:
    columns = VIEWS[view].columns
    heads = [one.head for one in columns][::-1] if chosen else []
    seen = set()
    for shift in range(max(2, most(columns, width, heads) + 1)):
        found = layout(columns, width, heads, shift)
        seen |= {one.column.head for one in found.placed if one.x < width}
        assert found.placed[0].column.head == (heads or [columns[0].head])[0]
    assert not found.right or width == 40
    assert seen == {one.head for one in columns}


WIDE = st.text(st.sampled_from("ab é日本⚙👍\u200f\u0301🇩🇪"), max_size=30)


@given(WIDE, st.integers(1, 20), st.booleans())
def test_a_cell_is_exactly_as_wide_as_its_column(text: str, size: int, right: bool) -> None:
    assert cell_len(fit(text, size, right)) == size


def test_what_is_cut_says_so() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("日本語", 4) == "日 …"
    assert fit("ab", 4, right=True) == "  ab"
