"""Commands on several rows: confirmation, progress, stop and summary."""

from __future__ import annotations

from dataclasses import replace

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.errors import Failure
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.outbox import claim
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard


async def _mark(seen: DashboardPilot, many: int) -> None:
    await seen.press("space", *["down"] * (many - 2), "V")


async def test_bulk_progress_is_shown_and_can_be_stopped(
    make: Factory, rt: Runtime, owner: Actor, conn: Connection
) -> None:
    numbers = [await make.queued() for _ in range(7)]
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.rows(*(f"D-{number}" for number in reversed(numbers)))
        await _mark(seen, 7)
        await seen.press("c")
        await seen.see("Cancel 7 jobs?", "D-7, D-6, D-5, D-4, D-3 and 2 more: 7 queued.")
        async with conn.transaction():
            await conn.execute("SELECT FROM draftsman.job_states WHERE number = 5 FOR UPDATE")
            await seen.press("y")
            await seen.see("Canceling", "2 of 7")
            await seen.press("escape")
            await seen.see("stopping")
        await seen.wait_for_toast("D-7, D-6, D-5 canceled")
        await seen.wait_for_toast("Stopped; 4 of 7 jobs not processed; they stay marked")
        await seen.dialog("MainScreen")
        assert seen.app.main.table.marked == {"D-4", "D-3", "D-2", "D-1"}
    statuses = [(await rt.read_model.job(number)).status for number in numbers]
    assert statuses == [Status.QUEUED] * 4 + [Status.CANCELED] * 3


async def test_rejected_jobs_stay_marked_with_the_reason(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    done = await make.completed()
    live = await make.queued()
    ended = await make.canceled()
    running = await make.running()
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows(*(f"D-{n}" for n in (running.number, ended, live, done)))
        await _mark(seen, 4)
        await seen.press("c")
        await seen.see("Cancel 2 of 4 jobs?", f"{running.name}, D-{live}: 1 running, 1 queued.")
        await seen.see(f"Without D-{ended}, D-{done}. Work so far is kept.")
        await rt.job_control.cancel(live, owner)
        await seen.press("y")
        await seen.wait_for_toast(f"D-{running.number} asked to stop")
        await seen.wait_for_toast(f"D-{live} is already canceled; nothing to cancel")
        assert seen.app.main.table.marked == {f"D-{live}"}
        assert (await rt.read_model.job(running.number)).cancel_requested_at is not None
        await seen.press("escape", "g")
        await seen.command("cancel-force")
        await seen.dialog("TypedConfirmDialog")
        await seen.see(f"Cancel D-{running.number} without waiting", "noop: running. Later writes")
        await seen.press("y", "enter")
        await seen.see(f"does not match D-{running.number}")
        assert (await rt.read_model.job(running.number)).status is Status.RUNNING
        await seen.press("ctrl+u")
        await seen.paste(f"d-{running.number}")
        await seen.press("enter")
        await seen.wait_for_toast(f"D-{running.number} canceled")
    assert (await rt.read_model.job(running.number)).status is Status.CANCELED


async def test_finished_jobs_are_not_canceled_and_live_jobs_not_retried(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    numbers = [await make.failed(), await make.canceled()]
    waiting = [await make.queued(), await make.queued()]
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows(*(f"D-{n}" for n in (*reversed(waiting), *reversed(numbers))))
        await _mark(seen, 2)
        await seen.press("r")
        await seen.wait_for_toast("each of D-4, D-3 is queued, not finished")
        await seen.press("escape", "down")
        await _mark(seen, 2)
        for verb in ("cancel", "cancel-force"):
            await seen.command(verb)
            await seen.wait_for_toast("none of D-2, D-1 fits: D-2 is already canceled; nothing to")
            await seen.dialog("MainScreen")
            seen.app.clear_notifications()
        await seen.press("escape", "c")
        await seen.wait_for_toast("D-1 is already failed; nothing to cancel")


async def test_failures_are_dismissed_and_leave_the_counts(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(2):
        await make.dead()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-2", "D-1")
        await seen.see("failures 2")
        await _mark(seen, 2)
        await seen.press("X")
        await seen.see("Dismiss 2 jobs?", "D-2, D-1: 2 dead letter.")
        await seen.press("y")
        await seen.wait_for_toast("D-2, D-1 dismissed")
        await seen.see("dismissed by root")

        async def is_counted() -> bool:
            stats = seen.app.refresher.last_stats
            return stats is not None and not any(stats.stats.open_failures.values())

        await until(is_counted, "the dismissals to be counted")
    assert await rt.read_model.jobs(failures=True) == []


async def test_only_open_failures_are_offered_to_be_dismissed(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    denied = (await make.asked(GATE)).number
    await make.decide(denied, False, people.carol)
    retried, dismissed, failed = [await make.failed() for _ in range(3)]
    await rt.job_control.retry(retried, owner)
    await rt.job_control.dismiss(dismissed, owner, "known")
    refusals = {
        denied: "was denied by a person; nothing to dismiss",
        retried: "was retried as D-5; nothing to dismiss",
        dismissed: "was already dismissed by root: known",
    }
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows("D-5", "D-4", "D-3", "D-2", "D-1")
        for job, refusal in refusals.items():
            seen.app.main.table.go_to(job_name(job))
            await seen.press("X")
            await seen.wait_for_toast(f"D-{job} {refusal}")
            assert seen.app.screen is seen.app.main
        await seen.press("g")
        await _mark(seen, 5)
        await seen.command("undismiss")
        await seen.wait_for_toast("D-3 undismissed")
        await seen.press("g")
        await _mark(seen, 5)
        await seen.press("X")
        await seen.see("Dismiss 2 of 5 jobs?", "D-4, D-3: 2 failed. Without D-5, D-2, D-1.")
        await seen.press("n")
        await seen.command("filter status:failed -D-4 -D-3")
        await seen.rows("D-2", "D-1")
        await _mark(seen, 2)
        await seen.press("X")
        await seen.wait_for_toast(f"none of D-2, D-1 fits: D-2 {refusals[retried]}")
    assert {job.number for job in await rt.read_model.jobs(failures=True)} == {dismissed, failed}


async def test_a_command_on_the_head_of_a_group_is_about_its_jobs(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(3):
        await make.failed()
    await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-4", "D-3", "D-2", "D-1")
        await seen.press("minus")
        await seen.rows("group:waits", "group:failures")
        assert "REPO" not in seen.text, "the columns of the folded rows"
        await seen.press("G")
        for key in ("w", "d", "o"):
            await seen.press(key)
            await seen.wait_for_toast("at a time, and the group has 3; choose a row of it")
            seen.app.clear_notifications()
        await seen.press("X")
        await seen.see("Dismiss 3 jobs?", "D-3, D-2, D-1: 3 failed.")
        await seen.press("y")
        await seen.wait_for_toast("D-3, D-2, D-1 dismissed")
        await seen.rows("group:waits", "group:closed")
        await seen.press("G")
        await seen.command("undismiss")
        await seen.see("Undismiss 3 jobs?")
        await seen.press("y")
        await seen.wait_for_toast("D-3, D-2, D-1 undismissed")
        await seen.rows("group:waits", "group:failures")
        main = seen.app.main
        main._states["jobs"] = replace(main.state, limit=3)
        main._show()
        await seen.see("▸ failures · 3")
        await seen.press("minus")
        await seen.see("── failures · 3")
        await seen.press("minus")
        await seen.until(lambda: len(main.table.rows) == 3)
        await seen.press("X")
        await seen.see("Dismiss 2 jobs?", "more of the group is not loaded.")


async def test_extend_rejects_several_marked_questions(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    asked = [(await make.asked()).name for _ in range(2)]
    async with open_dashboard(rt, owner) as seen:
        for table, rows in (("jobs", asked), ("inbox", [f"{name}/1" for name in asked])):
            await seen.command(table)
            await seen.rows(*rows)
            await seen.press("g")
            await _mark(seen, 2)
            await seen.press("e")
            await seen.wait_for_toast("extend takes one question at a time; Esc clears 2 marks")
            seen.app.clear_notifications()
            await seen.dialog("MainScreen")
        await seen.press(
            "escape", "g", "space", "down", "a"
        )  # the marked question, not the question under the cursor
        await seen.see(f"{asked[0]}/1 for ben, root")


async def test_job_that_finishes_during_the_confirmation(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    job = await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{job}")
        await seen.command("cancel no more")
        await seen.see("Cancel D-1?", "noop: queued. Reason: no more")
        await rt.job_control.cancel(job, owner, "first")
        await seen.press("y")
        await seen.wait_for_toast("D-1 is already canceled; nothing to cancel")
        await seen.press("r")
        await seen.see("Retry D-1?", "noop: canceled. Continues as a new job")
        await seen.press("y")
        await seen.wait_for_toast("D-1 retried as D-2")
        await seen.rows("D-2", "D-1")
        await seen.press("r")
        await seen.see("Retry D-1?")
        await seen.press("y")
        await seen.wait_for_toast("D-1 already retried as D-2")


async def test_finished_jobs_are_retried_with_each_option(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {"at": 1})
    await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
    done = await make.completed()
    asked = (await make.asked()).number
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows(f"D-{asked}", f"D-{done}", work.name)
        await seen.press("home", "r")
        await seen.wait_for_toast(f"D-{asked} is waiting for input, not finished; cancel it first")
        await seen.press("down", "r")
        await seen.see(f"D-{done} completed. Run it again?")
        await seen.press("y")
        await seen.wait_for_toast(f"D-{done} retried as D-4")
        await seen.command("retry freshly")
        await seen.wait_for_toast("allowed: fresh, again, with-answer")
        await seen.press("escape", "down")
        await seen.command("retry with-answer")
        await seen.see(f"Retry {work.name}?")
        await seen.press("y")
        await seen.wait_for_toast(f"{work.name} has no late answer")
        await seen.command("retry fresh")
        await seen.see(f"Retry {work.name}?", "Starts over as a new job, without checkpoints")
        await seen.press("y")
        await seen.wait_for_toast(f"{work.name} retried as D-5")
    assert await rt.checkpoints.latest(5) == (None, None)


async def test_retry_all_retries_matching_jobs_after_a_count(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    dead = [await make.dead() for _ in range(6)]
    await make.failed()
    await rt.job_control.retry(dead[0], owner)
    async with open_dashboard(rt, owner, view="dead") as seen:
        await seen.see("dead · 5 open of 6")
        await seen.command("retry-all")
        await seen.see(
            "Retry 5 jobs?",
            "D-2, D-3, D-4, D-5, D-6: 5 dead letter. 1 matching job was already retried",
        )
        await seen.press("y")
        await seen.wait_for_toast("retried as D-9")
        await seen.command("retry-all")
        await seen.wait_for_toast("nothing to retry")
        await seen.command("jobs status:failed word")
        await seen.command("retry-all")
        await seen.wait_for_toast("mark rows (space, V)")
        await seen.press("ctrl+u", "escape")
        await seen.command("retry-all status:failed type:noop since:1h")
        await seen.see("Retry D-7?", "noop: failed")
        await seen.press("n")
    assert len(await rt.read_model.jobs(statuses=[Status.QUEUED])) == 6


async def test_dead_letter_deliveries_of_a_job_and_of_all_jobs_are_resent(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(2):
        await make.queued(notify=["log"])

    async def dead() -> bool:
        for item in await claim(rt):
            await rt.delivery_sender.record(item, Failure("the disk is full", declared="PERMANENT"))
        return len(await rt.outbox.dead_letters()) == 2

    await until(dead, "both to be dead")
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-2", "D-1")
        await seen.press("R")
        await seen.wait_for_toast("1 delivery queued to resend")
        await seen.press("R")
        await seen.wait_for_toast("D-2: no dead-letter deliveries")
        await seen.command("redeliver-dead")
        await until(lambda: _alive(rt), "the other delivery")
        await seen.command("redeliver-dead")
        await seen.wait_for_toast("no dead-letter deliveries")


async def _alive(rt: Runtime) -> bool:
    return all(
        delivery.status is not DeliveryStatus.DEAD_LETTER for delivery in await rt.outbox.all()
    )
