"""The table of the throughput: its periods, kinds and trends."""

from __future__ import annotations

import pytest

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.tables.screen import TableState, title_parts
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.column_layout import layout
from tests.tui.dashboard.pilot import open_dashboard


@pytest.mark.parametrize("width", range(80, 201, 4))
def test_a_name_keeps_a_readable_width(width: int) -> None:
    columns = VIEWS["stats"].columns
    content = [max(column.width, len(column.head)) if column.width else 40 for column in columns]
    sizes = {
        placed.column.head: placed.size for placed in layout(columns, width, content=content).placed
    }
    assert sizes["NAME"] >= 24
    assert {"ENDED", "FAILED", "WAITED", "RAN"} <= sizes.keys()


def test_the_title_has_the_filter_as_it_is_typed() -> None:
    for table, text in (("stats", "status:day kind:type"), ("inbox", "kind:approval")):
        assert f"/{text}" in title_parts(table, TableState(filters.parse(text)))


async def test_stats_show_the_jobs_that_ended_by_period_and_kind(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.completed(repo="https://git.example/acme/pay")
    await make.failed(repo="https://git.example/acme/pay")
    async with open_dashboard(rt, owner, size=(160, 40)) as seen:
        await seen.command("stats")
        tables = ("last hour · 5", "last day · 5", "last week · 5", "TREND", "█")
        await seen.see("FAILED also counts those retried or dismissed since")
        await seen.see(*tables, "all jobs", "a bar is 2.5 min", "ended: up to 2", "1 h ago")
        assert seen.keys[0] == "hour:all:"
        await seen.command("stats status:day kind:repo")
        await seen.until(lambda: len(seen.keys) == 1)
        (key,) = seen.keys
        assert key.startswith("day:repo:")
        assert "pay" in key
        await seen.press("s")
        await seen.see("Sort by which column?", "waited 95%", "ran 95%")
        await seen.press("escape")
        await seen.command("columns")
        await seen.see("Columns of stats", "WAITED 95%")
        await seen.press("escape")
        await seen.command("sort waited95")
        await seen.see("by waited 95% ")
        await seen.press("enter")
        await seen.see("jobs · 2 · /repo:")
        await seen.command("stats status:month")
        await seen.wait_for_toast("unknown kind 'month'; kinds: all, queue, type, repo; statuses")
        await seen.command("stats kind:tpye")
        await seen.wait_for_toast("unknown kind 'tpye'; did you mean type?")
