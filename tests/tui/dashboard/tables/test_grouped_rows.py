"""Inbox and jobs in groups that fold, with the questions for the user first."""

from __future__ import annotations

from typing import Any

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.tui.dashboard.pilot import open_dashboard

WORDS = QuestionSpec(key="words", text="What is it called?", freeform=True)


async def test_questions_for_the_user_come_first(
    make: Factory, rt: Runtime, people: People
) -> None:
    first = await make.asked()
    gate = await make.asked(GATE)
    dave = GATE.model_copy(update={"approvers": ("dave",)})
    other = await make.asked(dave)
    carol = people.on(Source.TUI, "carol")
    async with open_dashboard(rt, carol, view="inbox", size=(160, 30)) as seen:
        await seen.rows(f"{gate.name}/1", f"{first.name}/1", f"{other.name}/1")
    async with open_dashboard(rt, people.on(Source.TUI, "dave"), view="inbox") as seen:
        await seen.command("sort question")
        await seen.rows(f"{first.name}/1", f"{gate.name}/1", f"{other.name}/1")
    only = await make.asked(dave)
    async with open_dashboard(rt, carol, view="inbox") as seen:
        await seen.command("filter kind:approval")
        await seen.rows(f"{gate.name}/1", f"{other.name}/1", f"{only.name}/1")


async def test_inbox_is_grouped_and_folded(make: Factory, rt: Runtime, owner: Actor) -> None:
    pay: Any
    shop: Any
    pay, shop = ({"repo": f"https://git.example/acme/{name}"} for name in ("pay", "shop"))
    await make.asked(type="run_agent", title="Tidy up", **pay)
    await make.asked(WORDS, type="run_agent", title="Name it", **shop)
    more = QUESTION.model_copy(update={"context": "The first is red."})
    await make.asked(more, type="run_agent", title="Tidy up", **pay)
    await make.asked()
    async with open_dashboard(rt, owner, view="inbox", size=(120, 30)) as seen:
        await seen.rows("D-1/1", "D-2/1", "D-3/1", "D-4/1")
        await seen.press("b")
        repositories = ["group:acme/pay", "group:acme/shop", "group:(none)"]
        await seen.rows(
            *(repositories[0], "D-1/1", "D-3/1"),
            *(repositories[1], "D-2/1"),
            *(repositories[2], "D-4/1"),
        )
        await seen.see("grouped by repository", "▾ acme/pay · 2")
        await seen.press("home", "enter")
        await seen.rows(*repositories[:2], "D-2/1", repositories[2], "D-4/1")
        await seen.see("▸ acme/pay · 2")
        assert seen.app.main.ids == ["D-1/1", "D-3/1"]
        await seen.press("space")
        await seen.see("2 marked")
        await seen.press("down", "space")
        await seen.see("3 marked")
        await seen.press("escape", "minus")
        await seen.rows(*repositories)
        await seen.press("minus")
        await seen.command("group-by question")
        same = "group:Which one? [red, blue]"
        await seen.rows(same, "D-1/1", "D-3/1", "D-4/1", "group:What is it called?", "D-2/1")
        await seen.command("group-by status")
        await seen.wait_for_toast("choose from: repository, person, question, none")
        await seen.command("group-by none")
        await seen.rows("D-1/1", "D-2/1", "D-3/1", "D-4/1")


async def test_a_group_that_appears_while_all_are_folded_is_folded(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    pay, shop = ({"repo": f"https://git.example/acme/{name}"} for name in ("pay", "shop"))
    await make.asked(type="run_agent", **pay)  # type: ignore[arg-type]
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1")
        await seen.press("b", "minus")
        await seen.rows("group:acme/pay")
        await make.asked(type="run_agent", **shop)  # type: ignore[arg-type]
        await seen.rows("group:acme/pay", "group:acme/shop")
        await seen.press("end", "enter")
        await seen.rows("group:acme/pay", "group:acme/shop", "D-2/1")
        await seen.press("minus")
        await seen.rows("group:acme/pay", "group:acme/shop")
        await seen.press("minus")
        await seen.rows("group:acme/pay", "D-1/1", "group:acme/shop", "D-2/1")


async def test_jobs_of_a_group_are_commanded_together(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    queued = [await make.queued() for _ in range(2)]
    await make.failed()
    async with open_dashboard(rt, owner) as seen:
        await seen.command("group-by status")
        await seen.rows("group:failed", "D-3", "group:queued", "D-2", "D-1")
        await seen.press("home", "down", "down", "c")
        await seen.dialog("ConfirmDialog")
        await seen.see("Cancel 2 jobs?", "D-2, D-1: ")
        await seen.press("y")
        await seen.see("▾ canceled · 2")
    assert {str((await rt.read_model.job(number)).status) for number in queued} == {"canceled"}
