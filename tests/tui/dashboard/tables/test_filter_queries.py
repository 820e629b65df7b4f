"""Filters of each table against its real query: rows are read for each accepted filter."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.errors import NotFound, UsageError
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_tui.dashboard.tables.filter import FIELDS, HEADS, parse
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.views import VIEWS
from tests.support.event_history import wait_for_feed

VALUES = st.sampled_from(
    ["0", "0h", "1", "$2", "90s", "9" * 30, "9999999d", "366d", "1.5", "-1", "1h30m", "٣", "me"]
) | st.text(max_size=12)
NAMES = st.sampled_from(sorted({*FIELDS, "age", "kind", "person", *HEADS}))
TERMS = st.builds("{}{}{}".format, NAMES, st.sampled_from(":<>"), VALUES) | st.sampled_from(
    ["job:D-1", "job:1", "job:x", "/a.c/", "/(/", "-b", "'", "status:failed,paused", "repo:\0"]
)


async def test_no_accepted_filter_fails_in_a_table(rt: Runtime, make: Factory) -> None:
    await make.asked()
    await make.asked(GATE)
    await make.dead()
    await make.queued(tags=["team=pay"])
    await make.worker_row()
    await wait_for_feed(rt)
    loop = asyncio.get_running_loop()
    now = datetime.now(UTC) + timedelta(minutes=5)
    accepted = 0

    async def fetch(view: Any, text: str) -> None:
        nonlocal accepted
        try:
            query = Query(view.resolve(parse(text)), now)
        except UsageError:
            return
        accepted += 1
        try:
            await view.fetch(rt, query)
        except (NotFound, UsageError):
            assert query.filter.job is not None, "other values are refused before"

    @settings(suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(VIEWS)), st.lists(TERMS, min_size=1, max_size=3))
    def each(name: str, terms: list[str]) -> None:
        future = asyncio.run_coroutine_threadsafe(fetch(VIEWS[name], " ".join(terms)), loop)
        future.result()

    await asyncio.to_thread(each)
    for view in VIEWS.values():
        for column in view.columns:
            for text in ("{}>0", "{}<0", "{}>90", "{}>$1", "{}>1h", "{}<9" + "9" * 20):
                await fetch(view, text.format(column.head.lower()))
    assert accepted > 100
