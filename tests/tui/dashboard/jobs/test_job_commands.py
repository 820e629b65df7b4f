"""Job screen: the commands, with the same keys as in tables."""

from __future__ import annotations

import pytest

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.errors import Failure
from draftsman.jobs.job import Source, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.outbox import claim
from draftsman_testing.people import People
from draftsman_tui.dashboard.jobs.details import loader
from tests.tui.dashboard.pilot import open_dashboard

AGAIN = QuestionSpec(key="again", text="And now?", choices=("more", "less"))


async def test_open_question_is_extended_and_answered_and_a_closed_question_is_shown(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    number = (await make.asked()).number
    await make.answer(number, "red")
    await rt.asking.ask((await make.running(number)).lease, AGAIN)
    async with open_dashboard(rt, owner) as seen:
        await seen.job(f"D-{number}/2")
        await seen.see("▸ D-1/2  question for", "1  more")
        await seen.press("up", "enter")
        await seen.dialog("TextDialog")
        await seen.see("D-1/1 was answered by root: red", "No further context.")
        await seen.press("escape", "down")
        await seen.command("extend 2d")
        await seen.wait_for_toast("D-1/2 expires in 3 d")
        await seen.press("enter")
        await seen.dialog("AnswerDialog")
        await seen.press("2")
        await seen.wait_for_toast("D-1/2 answered: less")
        await seen.see("D-1/2  question was answered by root: less", "Root (cli) answers less")
    assert (await rt.read_model.job(number)).status is Status.RESUMED


async def test_approval_is_denied_with_permission_and_rejected_without(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = (await make.asked(GATE)).number
    async with open_dashboard(rt, people.on(Source.TUI, "carol")) as seen:
        await seen.job(f"D-{number}", "5")
        await seen.press("c")
        await seen.command("cancel")
        await seen.wait_for_toast("Carol may not cancel (needs the role operator)")
        await seen.press("x")
        await seen.dialog("ApprovalDialog")
        await seen.press("n")
        await seen.see("decision  denied by carol", "Carol (tui) denies")


async def test_retry_offers_to_open_the_new_job(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "FULL_RELOAD_INTERVAL", 1e9)
    number = await make.failed()
    async with open_dashboard(rt, owner) as seen:
        await seen.job(f"D-{number}")
        await seen.press("r")
        await seen.see("Retry D-1?", "noop: failed. Continues as a new job")
        await seen.press("y")
        await seen.see("Open D-2?")
        await seen.press("n")
        await seen.see("D-1 · timeline", "retried as D-2")
        await seen.press("r")
        await seen.see("Retry D-1?")
        await seen.press("y")
        await seen.see("Open D-2?")
        await seen.press("y")
        await seen.see("D-2 · timeline", "retry of D-1", "queued")
        await seen.press("c")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.see("canceled by root")
    assert (await rt.read_model.job(2)).status is Status.CANCELED


async def test_dead_letter_delivery_is_resent_in_the_deliveries_tab(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.queued(notify=["log"])
    (item,) = await claim(rt)
    await rt.delivery_sender.record(item, Failure("the disk is full", declared="PERMANENT"))
    async with open_dashboard(rt, owner) as seen:
        await seen.job("D-1")
        assert "redeliver" not in seen.lines[-1]
        await seen.press("6")
        await seen.see("redeliver", "the disk is full")
        await seen.press("R")
        await seen.wait_for_toast("1 delivery queued to resend")
        await seen.see("unconfirmed")
    (again,) = await rt.outbox.all()
    assert again.status is not DeliveryStatus.DEAD_LETTER


async def test_why_diff_copy_and_browse(make: Factory, rt: Runtime, owner: Actor) -> None:
    work = await make.running(url="https://board.example/c/1", title="Tidy")
    await rt.changes.store(work.lease, b"--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+new\n")
    await rt.settlement.outcome(work, Done({"pr_url": "https://git.example/pr/7"}))
    opened: list[str] = []
    async with open_dashboard(rt, owner) as seen:
        seen.app.open_url = lambda url, **how: opened.append(url)  # type: ignore[method-assign]
        await seen.job("D-1", "w")
        await seen.dialog("TextDialog")
        await seen.see("D-1 completed", "finished")
        await seen.press("escape", "d")
        await seen.see("D-1 · diff", "+ new")
        await seen.press("Y")
        assert seen.app.clipboard == "D-1"
        await seen.press("7", "Y")
        await seen.wait_for_toast("Copied D-1.1")
        await seen.press("o")
        await seen.see("1  pull request  https://git.example/pr/7", "2  ticket")
        await seen.press("2")
        await seen.wait_for_toast("Opened https://board.example/c/1")
    assert opened == ["https://board.example/c/1"]


async def test_a_message_is_sent_to_the_agent(make: Factory, rt: Runtime, owner: Actor) -> None:
    number = await make.queued(type="run_agent", title="Do it")
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{number}")
        await seen.press("m")
        await seen.dialog("PromptDialog")
        await seen.type("use the v2 API")
        await seen.press("enter")
        await seen.wait_for_toast(f"Message 1 sent to D-{number}")
        await seen.command("tell and test it")
        await seen.wait_for_toast(f"Message 2 sent to D-{number}")
    messages = await rt.messages.of_job(number)
    assert [item.text for item in messages] == ["use the v2 API", "and test it"]


async def test_a_job_is_paused_and_resumed(make: Factory, rt: Runtime, owner: Actor) -> None:
    number = await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{number}")
        await seen.press("z")
        await seen.dialog("PromptDialog")
        await seen.see("for example: the API is down")
        await seen.press("enter")
        await seen.see("type a text first, or press esc to go back")
        await seen.type("the API is down")
        await seen.press("enter")
        await seen.wait_for_toast(f"D-{number} paused")
        assert "the API is down" in (await rt.read_model.why(number)).text
        await seen.press("Z")
        await seen.wait_for_toast(f"D-{number} resumed")


async def test_a_paused_job_that_waits_is_shown_as_paused(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.asked()
    other = await make.asked()
    await rt.job_control.pause(work.number, owner, "the API is down")
    async with open_dashboard(rt, owner, size=(140, 30)) as seen:
        await seen.rows(work.name, other.name)
        await seen.see(f"{work.name} paused", "paused by root: the API is down")
        await seen.command("jobs status:paused")
        await seen.rows(work.name)
        await seen.command("jobs status:paused,queued")
        await seen.rows(work.name)
        await seen.job(work.name)
        await seen.see("paused; waiting for input", "waits  paused since", "Z: resume; a: answer")


async def test_messages_and_pauses_that_a_job_refuses_ask_for_no_text(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    ended = await make.completed()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{ended}")
        await seen.press("m")
        await seen.wait_for_toast(f"D-{ended} is a job of type noop, which has no agent to read")
        await seen.press("z")
        await seen.wait_for_toast(f"D-{ended} is already completed; nothing to pause")
        paused = await make.queued(type="run_agent", title="Do it")
        await rt.job_control.pause(paused, owner, "noon")
        await seen.rows(f"D-{paused}", f"D-{ended}")
        await seen.press("home", "z")
        await seen.wait_for_toast(f"D-{paused} is already paused")
        await rt.job_control.cancel(paused, owner)
        await seen.see("canceled")
        await seen.press("m")
        await seen.wait_for_toast(f"D-{paused} is canceled, and takes no more messages")
        assert seen.app.screen is seen.app.main
