"""Column layout: visible columns, scrolling and wide characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.column_layout import fit, gap, layout, max_shift
from tests.support.cases import cases


@cases("view", VIEWS)
@cases("width", [80, 100, 120, 140, 200, 400])
def test_columns_fill_the_width_exactly(view: str, width: int) -> None:
    placed = layout(VIEWS[view].columns, width).placed
    end = placed[-1].x + placed[-1].size + gap(width)
    assert end <= width
    assert end >= width - 2 * gap(width)


@cases("view", VIEWS)
@cases("width", [40, 80, 120])
@cases("chosen", [False, True])
def test_every_column_is_reachable_by_scrolling(view: str, width: int, chosen: bool) -> None:
    columns = VIEWS[view].columns
    heads = [column.head for column in columns][::-1] if chosen else []
    seen = set()
    for shift in range(max(2, max_shift(columns, width, heads) + 1)):
        shown = layout(columns, width, heads, shift)
        seen |= {placed.column.head for placed in shown.placed if placed.x < width}
        assert shown.placed[0].column.head == (heads or [columns[0].head])[0]
    assert not shown.right or width == 40
    assert seen == {column.head for column in columns}


def test_columns_on_request_are_shown_where_they_are_chosen_or_sorted_by() -> None:
    def heads(chosen: tuple[str, ...] = (), sort: str | None = None) -> list[str]:
        shown = layout(VIEWS["jobs"].columns, 300, chosen, sort=sort)
        return [placed.column.head for placed in shown.placed]

    assert {"TYPE", "QUEUE"}.isdisjoint(heads())
    assert "TYPE" in heads(sort="TYPE")
    assert heads(("JOB", "QUEUE", "TYPE")) == ["JOB", "QUEUE", "TYPE"]


def _sizes(width: int, **content: int) -> dict[str, int]:
    columns = VIEWS["jobs"].columns
    needs = [content.get(column.head.lower(), column.width) for column in columns]
    empty = [nth for nth, column in enumerate(columns) if column.optional and not needs[nth]]
    placed = layout(columns, width, content=needs, empty=empty).placed
    return {column.column.head: column.size for column in placed}


def test_no_column_is_truncated_beside_spare_width() -> None:
    assert _sizes(80, title=0, next=38)["NEXT"] >= 36
    empty = {"repo": 3, "by": 3, "changes": 0, "cost": 0}
    assert _sizes(140, title=12, next=55, **empty)["NEXT"] == 55
    assert _sizes(80, title=60, next=0)["TITLE"] >= 42
    both = _sizes(80, title=90, next=90)
    assert abs(both["TITLE"] - both["NEXT"]) <= 1
    assert _sizes(200, title=20, repo=40, next=20)["REPO"] == 40


@given(st.sampled_from(sorted(VIEWS)), st.integers(80, 300), st.data())
def test_columns_fit_and_are_cut_only_without_spare_width(
    view: str, width: int, data: st.DataObject
) -> None:
    columns = VIEWS[view].columns
    size = st.integers(0, 200)
    content = data.draw(st.lists(size, min_size=len(columns), max_size=len(columns)))
    placed = layout(columns, width, content=content).placed
    end = placed[-1].x + placed[-1].size + gap(width)
    assert end <= width
    cut = [part for part in placed if part.size < content[part.nth]]
    cut += [part for part in placed if part.size < cell_len(part.column.heading)]
    assert not cut or end >= width - 2 * gap(width)


@cases("view", VIEWS)
@cases("width", [80, 120, 200])
def test_no_head_is_cut_while_the_table_is_narrower_than_the_screen(view: str, width: int) -> None:
    columns = VIEWS[view].columns
    placed = layout(columns, width, content=[1] * len(columns)).placed
    end = placed[-1].x + placed[-1].size + gap(width)
    cut = [part.column.heading for part in placed if part.size < cell_len(part.column.heading)]
    assert end >= width - 2 * gap(width) or not cut


WIDE = st.text(st.sampled_from("ab é日本⚙👍\u200f\u0301🇩🇪"), max_size=30)


@given(WIDE, st.integers(1, 20), st.booleans())
def test_cell_is_exactly_as_wide_as_its_column(text: str, size: int, right: bool) -> None:
    assert cell_len(fit(text, size, right)) == size


def test_truncated_cell_ends_with_an_ellipsis() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("日本語", 4) == "日… "
    assert fit("ab", 4, right=True) == "  ab"
