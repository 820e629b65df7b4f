"""Bar of the tables, and the questions that wait for the user at the top."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.widgets.tabs import Tabs
from tests.tui.dashboard.pilot import open_dashboard


async def test_bar_counts_what_needs_attention_and_opens_tables(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    asked = await make.asked()
    await make.queued()
    await make.dead()
    await make.worker_row()
    async with open_dashboard(rt, owner, size=(120, 30)) as seen:
        await seen.see("1:jobs (3)", "2:inbox (1)●", "3:dead (1)", "6:workers (1)", "0:queues")
        await seen.see(" 1 question for you ")
        line = next(nth for nth, text in enumerate(seen.lines) if "2:inbox" in text)
        await seen.pilot.click(offset=(seen.lines[line].index("2:inbox") + 2, line))
        await seen.rows(f"{asked.name}/1")
        await make.answer(asked.number, "red")
        await seen.until(lambda: "2:inbox (1)" not in seen.text)
        await seen.until(lambda: "for you" not in seen.text)
        await seen.pilot.resize_terminal(80, 24)
        await seen.until(lambda: not seen.app.main.query_one(Tabs).display)
        await seen.pilot.resize_terminal(80, 30)
        await seen.see("1:jobs 2:inbox 3:dead 4:runs 5:deliv 6:work 7:event", "9:board 0:queues")


async def test_the_current_tab_is_marked_without_colors(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    async with open_dashboard(rt, owner, size=(120, 30)) as seen:
        seen.app.theme = "none"
        await seen.see("1:jobs")
        bar = seen.app.main.query_one(Tabs)
        await seen.until(lambda: bool(bar.render_line(0)))
        marked = [part.text for part in bar.render_line(0) if part.style and part.style.reverse]
        assert [text.strip() for text in marked] == ["1:jobs"]
