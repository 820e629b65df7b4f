"""Groups of jobs by the attention that they need, and their preview."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.jobs.view import LABELS, JobsResource, attention
from draftsman_tui.dashboard.tables.filter import NOTHING, parse
from draftsman_tui.dashboard.tables.grouping import GroupHead, grouped
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, read, to_json
from draftsman_tui.dashboard.widgets.preview_pane import group_items
from tests.tui.dashboard.fixtures_data import NOW, ROWS
from tests.tui.dashboard.pilot import open_dashboard


def test_jobs_that_need_a_person_are_first() -> None:
    rows = ROWS["jobs"]
    order = JobsResource.group_order["attention"]
    shown = grouped(rows, attention, (), order)
    heads = [row for row in shown if isinstance(row, GroupHead)]
    assert [head.label for head in heads] == list(order)
    assert [len(head.rows) for head in heads] == [2, 1, 5, 2, 3]
    view = BUILTIN_VIEWS["attention"]
    assert read(to_json(view)) == view
    assert str(view) == "jobs  grouped by attention"


def test_the_preview_of_a_group_has_its_counts_and_rows() -> None:
    head = GroupHead("failures", tuple(ROWS["jobs"][:3]), folded=True)
    (item,) = group_items(head, JobsResource(), NOW, 60)
    lines = ["".join(cell.text for cell in row) for row in item.rows]
    assert lines[0] == "failures  3 rows"
    assert "1 running" in lines[1]
    assert len(lines) == 6
    assert lines[3].startswith("D-143")


async def _team(make: Factory) -> None:
    """Make D-1 to D-9: two jobs of each group, the retried dead letter among the finished."""
    await make.completed()
    await make.failed()
    asked = [await make.asked() for _ in range(2)]
    assert [work.number for work in asked] == [3, 4]
    await make.running()
    await make.queued()
    dead = await make.dead()
    await make.dead()
    retry = await make.rt.job_control.retry(dead, make.owner)
    assert retry.number == 9


async def test_pages_follow_the_groups(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _team(make)
    jobs = JobsResource()
    query = Query(NOTHING, await rt.checkpoints.now(), group="attention")
    for limit in range(1, 10):
        numbers = list[int]()
        before = None
        while True:
            rows = await jobs.fetch(rt, replace(query, before=before, limit=limit))
            numbers += [row.number for row in rows.items]
            before = rows.next
            if before is None:
                break
        assert numbers == [3, 4, 5, 9, 6, 8, 2, 7, 1], limit
    failed = replace(query, filter=parse("status:failed,dead_letter"))
    assert [row.number for row in (await jobs.fetch(rt, failed)).items] == [8, 2, 7]


async def test_jobs_that_need_attention_are_first_until_they_are_sorted(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await _team(make)
    order = [f"D-{number}" for number in (3, 4, 5, 9, 6, 8, 2, 7, 1)]
    async with open_dashboard(rt, owner, size=(100, 24)) as seen:
        await seen.rows(*order)
        await seen.see("── needs a person · 2 ──", "── closed · 2 ──")
        assert seen.cursor_key == "D-3"
        await seen.press("down", "down")
        assert seen.cursor_key == "D-5"
        await seen.press("up", "home", "up")
        assert seen.cursor_key == "D-3"
        await seen.press("space", "V")
        await seen.command("sort job")
        await seen.rows(*(f"D-{number}" for number in range(1, 10)))
        await seen.command("group-by none")
        await seen.command("sort")
        await seen.dialog("ChoiceDialog")
        await seen.press("escape")
        await seen.command("group-by attention")
        await seen.press("minus")
        await seen.rows(*(f"group:{label}" for label in LABELS))
        await seen.command("filter status:waiting")
        await seen.see("/status:waiting", "needs a person · 2")


def test_each_status_has_a_group() -> None:
    (row,) = ROWS["jobs"][:1]
    groups = {attention(replace(row, status=status, failure_open=True)) for status in Status}
    assert groups == set(LABELS)
