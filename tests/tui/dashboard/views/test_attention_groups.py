"""Groups of jobs by the attention that they need, and their preview."""

from __future__ import annotations

from draftsman_tui.dashboard.grouping import GroupHead, grouped
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, read, to_json
from draftsman_tui.dashboard.views.jobs import JobsResource, attention
from draftsman_tui.dashboard.widgets.preview_pane import group_items
from tests.tui.dashboard.fixtures_data import NOW, ROWS


def test_jobs_that_need_a_person_are_first() -> None:
    rows, order = ROWS["jobs"], JobsResource.group_order["attention"]
    shown = grouped(rows, attention, (), order)
    heads = [row for row in shown if isinstance(row, GroupHead)]
    assert [head.label for head in heads] == list(order)
    assert [len(head.rows) for head in heads] == [2, 2, 4, 2, 3]
    view = BUILTIN_VIEWS["attention"]
    assert read(to_json(view)) == view
    assert str(view) == "jobs  grouped by attention"


def test_the_preview_of_a_group_has_its_counts_and_rows() -> None:
    head = GroupHead("failed", tuple(ROWS["jobs"][:3]), folded=True)
    (item,) = group_items(head, JobsResource(), NOW, 60)
    lines = ["".join(cell.text for cell in row) for row in item.rows]
    assert lines[0] == "failed  3 rows"
    assert "1 running" in lines[1]
    assert len(lines) == 6
    assert lines[3].startswith("D-143")
