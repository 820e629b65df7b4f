"""Commands: their effect, and the reason of a rejection."""

from __future__ import annotations

import pytest

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.errors import Failure, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.outbox import claim
from draftsman_testing.people import People
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.frame.named_rows import split_names
from tests.tui.dashboard.pilot import open_dashboard

WORDS = QuestionSpec(key="words", text="What is it called?", freeform=True)


def test_a_prefix_of_several_commands_is_that_of_a_table() -> None:
    for typed, name in (("j", "jobs"), ("i", "inbox"), ("job", "job"), ("jobs x", "jobs")):
        assert COMMANDS.parse(typed)[0].name == name
    with pytest.raises(UsageError, match="ambiguous command 'ca': cancel, cancel-force"):
        COMMANDS.parse("ca")


async def test_choice_is_answered_by_its_number(make: Factory, rt: Runtime, owner: Actor) -> None:
    job = (await make.asked()).number
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows(f"D-{job}/1")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.see("1  red", "2  blue")
        await seen.press("2")
        assert "blue" in await seen.wait_for_toast("answered")
        await seen.rows()
    _, answers = await rt.questions.of_job(job)
    assert [answer.source_event_id[:4] for answer in answers] == ["tui:"]
    assert (await rt.read_model.job(job)).status is Status.RESUMED


async def test_free_text_is_answered_and_escape_submits_nothing(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    job = (await make.asked(WORDS)).number
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{job}")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        assert not (await rt.questions.of_job(job))[1]
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.type("a 1st try")
        await seen.press("enter")
        assert "a 1st try" in await seen.wait_for_toast("answered")


async def test_invalid_choice_keeps_the_dialog_open(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    job = (await make.asked()).number
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows(f"D-{job}/1")
        await seen.command("answer green")
        await seen.dialog("AnswerDialog")
        await seen.see("green")
        await seen.press("1")
        await seen.wait_for_toast("answered")


async def _decided(rt: Runtime, make: Factory, by: Actor, *keys: str) -> tuple[int, str]:
    work = await make.asked(GATE)
    async with open_dashboard(rt, by, view="inbox") as seen:
        await seen.rows(f"D-{work.number}/1")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.see("Deploy?", "carol, dave")
        await seen.press(*keys)
        return work.number, await seen.wait_for_toast("d")


async def test_approval_is_approved(make: Factory, rt: Runtime, people: People) -> None:
    carol = people.on(Source.TUI, "carol")
    job, toast = await _decided(rt, make, carol, "enter", "y")
    assert "approved" in toast
    assert (await rt.read_model.job(job)).status is Status.RESUMED


async def test_approval_is_denied_with_a_reason(make: Factory, rt: Runtime, people: People) -> None:
    carol = people.on(Source.TUI, "carol")
    job, toast = await _decided(rt, make, carol, "r", *"no", "enter", "n")
    assert "denied" in toast
    denied = await rt.read_model.job(job)
    assert (denied.status, (denied.last_error or "")[-2:]) == (Status.FAILED, "no")


async def test_unauthorized_decision_shows_the_reason(
    make: Factory, rt: Runtime, people: People
) -> None:
    erin = people.on(Source.TUI, "erin")
    work = await make.asked(GATE)
    async with open_dashboard(rt, erin, view="inbox") as seen:
        await seen.rows(f"{work.name}/1")
        await seen.press("a")
        await seen.dialog("ApprovalDialog")
        await seen.press("r", *"why", "enter", "y")
        await seen.see("erin may not decide this approval; allowed: carol", "why")
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


async def test_approval_shows_the_changes(make: Factory, rt: Runtime, owner: Actor) -> None:
    work = await make.running()
    await rt.changes.store(work.lease, b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
    await rt.asking.ask(work.lease, GATE)
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(work.name)
        await seen.press("y")
        await seen.dialog("ApprovalDialog")
        await seen.see("- old", "+ new")
        await seen.press("n")
        await seen.dialog("ApprovalDialog")
        await seen.press("y")
        await seen.wait_for_toast("approved")


async def test_deadline_of_a_question_is_extended(make: Factory, rt: Runtime, owner: Actor) -> None:
    job = (await make.asked()).number
    before = (await rt.questions.get(job, 1)).expires_at
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows(f"D-{job}/1")
        await seen.press("e")
        await seen.dialog("PromptDialog")
        await seen.type("2d")
        await seen.press("enter")
        await seen.wait_for_toast("expires in")
        await seen.command("extend soon")
        await seen.wait_for_toast("invalid duration")
    after = (await rt.questions.get(job, 1)).expires_at
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() == pytest.approx(2 * 86_400, abs=60)


async def test_a_question_is_acknowledged_snoozed_and_delegated(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    job = (await make.asked()).number
    async with open_dashboard(rt, owner, view="inbox", size=(140, 40)) as seen:
        await seen.rows(f"D-{job}/1")
        await seen.press("i")
        await seen.wait_for_toast("acknowledged until")
        await seen.see("root works on it")
        await seen.press("I")
        await seen.dialog("PromptDialog")
        await seen.type("2h")
        await seen.press("enter")
        await seen.wait_for_toast("no reminders for you")
        await seen.command("delegate ben 30m")
        await seen.wait_for_toast("delegated to ben")
        await seen.see("delegated to ben")
        await seen.command("delegate zoe")
        await seen.wait_for_toast("unknown person 'zoe'")
    delays = await rt.acknowledgments.delays(job, 1)
    assert [(item.person, item.acknowledged) for item in delays] == [("root", False)]


async def test_several_jobs_are_canceled_after_confirmation(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    numbers = [await make.queued() for _ in range(3)]
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-3", "D-2", "D-1")
        await seen.press("space", "V", "c")
        await seen.dialog("ConfirmDialog")
        await seen.see("Cancel 2 jobs?", "D-3, D-2: 2 queued.")
        await seen.press("enter")
        await seen.dialog("MainScreen")
        assert (await rt.read_model.job(numbers[2])).status is Status.QUEUED
        await seen.press("c")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.wait_for_toast("D-3, D-2 canceled")
    statuses = [(await rt.read_model.job(number)).status for number in numbers]
    assert statuses == [Status.QUEUED, Status.CANCELED, Status.CANCELED]


async def test_finished_job_is_retried_and_a_live_job_is_rejected(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    failed = await make.failed()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{failed}")
        await seen.press("r")
        await seen.see(f"Retry D-{failed}?", "from the last checkpoint")
        await seen.press("enter")
        await seen.dialog("MainScreen")
        assert len(await rt.read_model.jobs()) == 1
        await seen.press("r")
        await seen.see(f"Retry D-{failed}?")
        await seen.press("y")
        await seen.wait_for_toast(f"D-{failed} retried as D-2")
        await seen.rows("D-2", f"D-{failed}")
        await seen.press("up", "r")
        await seen.wait_for_toast("D-2 is queued, not finished")


async def test_dead_letter_delivery_is_resent(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued(notify=["log"])
    (item,) = await claim(rt)
    await rt.delivery_sender.record(item, Failure("the disk is full", declared="PERMANENT"))
    async with open_dashboard(rt, owner, view="deliveries") as seen:
        await seen.see("the disk is full")
        await seen.press("R")
        await seen.wait_for_toast("1 delivery queued to resend")
        await seen.press("R")
        await seen.wait_for_toast("not a dead letter; nothing to redeliver")
    (again,) = await rt.outbox.all()
    assert (again.seq, again.attempts) == (item.seq, 0)
    assert again.status is not DeliveryStatus.DEAD_LETTER


async def test_why_copy_help_and_theme(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-1")
        await seen.press("w")
        await seen.see("D-1 queued")
        await seen.press("escape")
        await seen.press("Y")
        await seen.wait_for_toast("Copied D-1")
        assert seen.app.clipboard == "D-1"
        await seen.press("o")
        await seen.wait_for_toast("no web page to open")
        await seen.press("d")
        await seen.wait_for_toast("D-1 has no changes so far")
        await seen.press("t")
        assert seen.app.theme == "light"
        await seen.command("nonsense")
        await seen.see("unknown command: nonsense", ":nonsense")
        await seen.press("escape")
        await seen.press("question_mark")
        await seen.see("Commands")


async def test_the_palette_has_every_command(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner) as seen:
        await seen.press("ctrl+p")
        await seen.dialog("CommandPalette")
        await seen.type("inbox")
        await seen.until(lambda: "Open questions" in seen.text and "All jobs" not in seen.text)
        await seen.press("enter")
        await seen.see("inbox · 0")


async def test_the_palette_finds_the_commands_below_the_help(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner) as seen:
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        await seen.press("ctrl+p")
        await seen.dialog("CommandPalette")
        await seen.type("inbox")
        await seen.until(lambda: "Open questions" in seen.text and "All jobs" not in seen.text)
        await seen.press("enter")
        await seen.dialog("MainScreen")
        await seen.see("inbox · 0")
        await seen.press("n")
        await seen.dialog("NewJobDialog")
        await seen.press("ctrl+p")
        assert type(seen.app.screen).__name__ == "NewJobDialog"


async def test_next_steps_name_keys_and_lines_of_the_dashboard(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    failed, dismissed, retried = [await make.failed() for _ in range(3)]
    await rt.job_control.dismiss(dismissed, owner)
    retry = (await rt.job_control.retry(retried, owner)).number
    steps = {
        failed: "to take it out of attention: press X",
        dismissed: "to retry: press r; to take it back: enter :undismiss",
        retried: f"to see the retry: enter :D-{retry}",
        retry: "draftsman worker --queue",
    }
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows(*(f"D-{number}" for number in sorted(steps, reverse=True)))
        for number, step in steps.items():
            seen.app.main.table.go_to(job_name(number))
            await seen.press("w")
            await seen.see(step)
            await seen.press("escape")
            await seen.dialog("MainScreen")
        await seen.command("undismiss")
        await seen.wait_for_toast(f"D-{retry} is queued, not failed; nothing to take back")
        await seen.press("Z")
        await seen.wait_for_toast(f"D-{retry} is not paused; press w for why")


async def test_the_palette_shows_keys_and_finds_other_words(rt: Runtime, owner: Actor) -> None:
    found = {
        "stop": ("cancel (stop)", "c"),
        "kill": ("cancel-force (kill)", "ctrl+k"),
        "pause": ("pause-job", "z"),
        "approve": ("approve", "y"),
        "output": ("log (output)", "l"),
        "rerun": ("retry (rerun)", "R"),
    }
    async with open_dashboard(rt, owner, keys={"retry": "R"}) as seen:
        for word, (name, key) in found.items():
            await seen.press("ctrl+p")
            await seen.dialog("CommandPalette")
            await seen.type(word)
            await seen.until(
                lambda name=name, key=key: any(  # type: ignore[misc]
                    line.strip(" │▌").split() == [*name.split(), key] for line in seen.lines
                )
            )
            await seen.press("escape", "escape")
            await seen.dialog("MainScreen")


async def test_keys_can_be_remapped(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner, keys={"inbox": "i", "down": "x"}) as seen:
        await seen.see("jobs · 0")
        await seen.press("2")
        assert "jobs · 0" in seen.text
        await seen.press("i")
        await seen.see("inbox · 0")


async def test_user_without_roles_is_rejected_before_any_dialog(
    make: Factory, rt: Runtime, people: People
) -> None:
    job = await make.queued()
    ben = people.on(Source.TUI, "ben")
    async with open_dashboard(rt, ben) as seen:
        await seen.rows(f"D-{job}")
        await seen.press("c")
        await seen.command("cancel")
        await seen.wait_for_toast("Ben may not cancel (needs the role operator)")
        assert type(seen.app.screen).__name__ == "MainScreen"
    assert (await rt.read_model.job(job)).status is Status.QUEUED


async def test_the_help_is_searched(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner, size=(120, 50)) as seen:
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        await seen.see(":snooze", ":extend")
        await seen.press("slash")
        await seen.type("extend deadline")
        await seen.until(lambda: ":snooze" not in seen.text)
        await seen.see(":extend", "Extend the deadline of a question.")
        await seen.press("enter", "escape")
        await seen.see(":snooze", ":extend")
        await seen.press("escape")
        await seen.dialog("MainScreen")


async def test_commands_take_names_of_jobs_and_questions_instead_of_the_selected_rows(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    failed = await make.failed()
    queued = [await make.queued() for _ in range(3)]
    asked = (await make.asked()).number
    async with open_dashboard(rt, owner, view="workers") as seen:
        await seen.command(f"retry d-{failed}")
        await seen.see(f"Retry D-{failed}?")
        await seen.press("y")
        await seen.wait_for_toast(f"D-{failed} retried as D-6")
        await seen.command("priority 7 D-2..D-3")
        await seen.see("Priority 2 jobs?")
        await seen.press("y")
        await seen.wait_for_toast("D-2, D-3 set to priority 7")
        await seen.command("cancel D-2..D-4 see D-142")
        await seen.see("Cancel 3 jobs?", "Reason: see D-142")
        await seen.press("y")
        await seen.wait_for_toast("D-2, D-3, D-4 canceled")
        await seen.command(f"why D-{asked}")
        await seen.see(f"D-{asked} waiting for input")
        await seen.press("escape")
        await seen.command(f"answer D-{asked}/1 blue")
        await seen.wait_for_toast("answered: blue")
        await seen.command("retry D-9999")
        await seen.wait_for_toast("there is no job D-9999")
        await seen.command("retry NOW")
        await seen.wait_for_toast("retry is available in")
        await seen.command("why D-1 D-2")
        await seen.wait_for_toast("why takes one job at a time, not 2")
        await seen.command("jobs")
        await seen.command("retry Freshly")
        await seen.wait_for_toast("unknown argument 'Freshly'; allowed: fresh")
    assert [(await rt.read_model.job(job)).status for job in queued] == [Status.CANCELED] * 3


async def test_messages_go_with_the_next_key_that_changes_what_is_shown(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.completed()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-1")
        await seen.command("cancel")
        await seen.wait_for_toast("D-1 is already completed")
        await seen.press("down")
        assert seen.toasts
        await seen.command("limits")
        await seen.until(lambda: seen.app.main.view_name == "limits")
        assert not seen.toasts
        await seen.command("filter nothing")
        await seen.command("job D-9999")
        await seen.wait_for_toast("there is no job D-9999")
        await seen.press("slash")
        await seen.type("x")
        await seen.press("enter")
        await seen.until(lambda: "nothingx" in str(seen.app.main.state.filter))
        assert not seen.toasts
        await seen.command("jobs")
        await seen.command("retry D-1 again")
        await seen.see("Retry D-1?")
        await seen.press("y")
        await seen.wait_for_toast("D-1 retried as D-2")
        await seen.command("new")
        await seen.dialog("NewJobDialog")
        await seen.press("escape")
        await seen.command("priority 99999 D-2")
        await seen.wait_for_toast("priority 99999: allowed are -1000 to 1000")


async def test_a_command_replaces_the_help(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner) as seen:
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        await seen.press("colon", *"workers", "enter")
        await seen.dialog("MainScreen")
        await seen.until(lambda: seen.app.main.view_name == "workers")


@pytest.mark.parametrize(
    ("line", "names", "rest"),
    [
        ("cancel D-1..D-3 D-7 too late", ["D-1..D-3", "D-7"], "too late"),
        ("cancel as in D-7", [], "as in D-7"),
        ("priority 5 D-1 d-2", ["D-1", "d-2"], "5"),
        ("move before D-2", [], "before D-2"),
        ("move D-1 before D-2", ["D-1"], "before D-2"),
        ("answer D-1/2 a  b", ["D-1/2"], "a  b"),
        ("open D-1", [], "D-1"),
    ],
)
def test_names_come_first_or_where_they_are_no_argument(
    line: str, names: list[str], rest: str
) -> None:
    command, text = COMMANDS.parse(line)
    assert split_names(command, text) == (names or (), rest)


@pytest.mark.parametrize(
    ("command", "problem"),
    [("priority abc", "abc"), ("move sideways", "enter top, bottom"), ("retry never", "never")],
)
async def test_arguments_are_checked_before_the_row(
    make: Factory, rt: Runtime, owner: Actor, command: str, problem: str
) -> None:
    await make.asked()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-1")
        await seen.command(command)
        assert "waiting" not in await seen.wait_for_toast(problem)
