"""The table of the throughput: its periods, kinds and trends."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.dashboard.pilot import open_dashboard


async def test_stats_show_the_jobs_that_ended_by_period_and_kind(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.completed(repo="https://git.example/acme/pay")
    await make.failed(repo="https://git.example/acme/pay")
    async with open_dashboard(rt, owner, size=(160, 40)) as seen:
        await seen.command("stats")
        tables = ("last hour · 5", "last day · 5", "last week · 5", "TREND", "█")
        await seen.see(*tables, "all jobs", "a bar is 2.5 min", "ended: up to 2", "1 h ago")
        assert seen.keys[0] == "hour:all:"
        await seen.command("stats status:day kind:repo")
        await seen.until(lambda: len(seen.keys) == 1)
        (key,) = seen.keys
        assert key.startswith("day:repo:")
        assert "pay" in key
        await seen.press("enter")
        await seen.see("jobs · 2 · /repo:")
        await seen.command("stats status:month")
        await seen.wait_for_toast('unknown kind "month"; kinds: all, queue, type, repo; statuses')
