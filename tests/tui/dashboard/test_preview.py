"""Preview of the job under the cursor, on large screens."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_tui.dashboard.widgets.preview_pane import PreviewPane
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard


def pane(seen: DashboardPilot) -> PreviewPane:
    return seen.app.main.query_one(PreviewPane)


async def test_preview_follows_the_cursor_and_the_job(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    asked = await make.asked(title="Name the option")
    queued = await make.queued(title="Mow the lawn", text="Mind the\nflowers")
    async with open_dashboard(rt, owner, size=(160, 30)) as seen:
        await seen.newest_first()
        await seen.rows(f"D-{queued}", asked.name)
        await seen.press("g")
        await seen.see("D-2 · Mow the lawn", "Mind the", "submitted the job")
        assert pane(seen).region.x > seen.app.main.table.region.x
        await seen.press("down")
        await seen.see("D-1 · Name the option", "Which one?", "2  blue", "waits for an answer")
        assert "Mind the" not in seen.text
        await make.answer(asked.number, "red")
        await seen.until(lambda: "root answered" in pane(seen).text)
        assert "D-1/1  question" not in pane(seen).text
        await seen.press("l")
        await seen.dialog("JobScreen")
        await seen.see("D-1 has no output yet")
        await rt.job_control.cancel(asked.number, owner, "enough")
        await seen.see("canceled by root: enough")
        await seen.press("escape")
        await seen.until(lambda: "root canceled the job" in pane(seen).text)


async def test_all_open_questions_of_a_job_are_shown_and_none_is_answered_by_chance(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    other = QUESTION.model_copy(update={"key": "other", "text": "Which other?"})
    work = await make.asked_at_once(QUESTION, other, title="Name the option")
    async with open_dashboard(rt, owner, size=(160, 40)) as seen:
        await seen.rows(work.name)
        await seen.see("D-1 · Name the option", "Questions", "Which one?", "Which other?")
        await seen.press("a")
        await seen.wait_for_toast(
            "D-1 has 2 open questions, D-1/1, D-1/2; select one in the inbox, or in the tab"
            " questions of the job"
        )
        await make.answer(work.number, "red")
        await seen.until(lambda: "D-1/1  question" not in pane(seen).text)
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.see("D-1/2")


async def test_the_preview_has_the_job_that_a_review_asks_about(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for number in (1, 2):
        await make.asked(title=f"Paint house {number}")
    await make.queued(title="Mow the lawn")
    async with open_dashboard(rt, owner, size=(160, 40)) as seen:
        await seen.newest_first()
        await seen.press("g")
        await seen.see("D-3 · Mow the lawn")
        await seen.press("A")
        for number in (1, 2):
            await seen.see(f"{number} of 2 for you · D-{number}/1")
            await seen.until(lambda n=number: f"D-{n} · Paint house {n}" in pane(seen).text)  # type: ignore[misc]
            await seen.press("s")
        await seen.dialog("MainScreen")
        await seen.until(lambda: "D-3 · Mow the lawn" in pane(seen).text)
        assert seen.cursor_key == "D-3"


async def test_place_of_the_preview(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued(title="Mow the lawn")
    async with open_dashboard(rt, owner, size=(120, 42)) as seen:
        await seen.see("D-1 · Mow the lawn", "Newest events")
        assert pane(seen).region.y > seen.app.main.table.region.y
        await seen.press("p")
        await seen.until(lambda: "Newest events" not in seen.text)
        assert not pane(seen).region
        await seen.press("p")
        await seen.see("Newest events")
        await seen.command("workers")
        await seen.until(lambda: not pane(seen).region)
        await seen.command("jobs")
        await seen.see("Newest events")
        await seen.pilot.resize_terminal(120, 30)
        await seen.until(lambda: not pane(seen).region)
        assert seen.app.refresher._preview is None
