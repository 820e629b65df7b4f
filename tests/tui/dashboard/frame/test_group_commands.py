"""Commands on groups of jobs."""

from __future__ import annotations

from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.command_table import COMMANDS
from tests.tui.dashboard.pilot import open_dashboard


async def test_a_group_is_canceled_after_confirmation(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    jobs = [await make.queued(group={"name": "release", "kind": "sequential"}) for _ in range(2)]
    async with open_dashboard(rt, owner, view="groups", size=(120, 30)) as seen:
        await seen.see("release", "0 of 2 succeeded, 2 waiting")
        await seen.command("cancel-group wrong version")
        await seen.dialog("ConfirmDialog")
        await seen.see("Cancel 2 unfinished jobs of the group 'release'?")
        await seen.press("n")
        assert (await rt.workflows.groups.get("release")).canceled_at is None
        await seen.command("cancel-group wrong version")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.wait_for_toast("Group 'release' canceled: D-")
        await seen.see("0 of 2 succeeded, 2 canceled")
        await seen.press("c")
        await seen.wait_for_toast("all jobs of the group 'release' have ended")
    assert [(await rt.read_model.job(job)).status for job in jobs] == [Status.CANCELED] * 2
    assert (await rt.workflows.groups.get("release")).cancel_reason == "wrong version"


async def test_a_group_with_a_job_of_another_person_is_canceled_only_by_an_operator(
    make: Factory, rt: Runtime, people: People, owner: Actor
) -> None:
    group = {"name": "release", "kind": "parallel", "on_failure": "continue"}
    request = invocation(type="noop", group=group)
    await rt.submissions.submit(request, people.on(Source.TUI, "anna"))
    other = await make.queued(group="release")
    for name in ("ben", "anna", "olga"):
        async with open_dashboard(rt, people.on(Source.TUI, name), view="groups") as seen:
            await seen.see("0 of 2 succeeded, 2 waiting")
            command = COMMANDS["cancel-group"]
            assert (seen.app.main.refusal(command) is None) == (name == "olga")
            if name == "olga":
                continue
            await seen.press("c")
            await seen.wait_for_toast(f"{name.title()} may not cancel (needs the role operator)")
            assert type(seen.app.screen).__name__ == "MainScreen"
    await rt.job_control.cancel(other, owner)
    async with open_dashboard(rt, people.on(Source.TUI, "anna"), view="groups") as seen:
        await seen.see("0 of 2 succeeded, 1 waiting, 1 canceled")
        await seen.press("c")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.wait_for_toast("Group 'release' canceled: D-")
