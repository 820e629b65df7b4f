"""Display name of a worker."""

from __future__ import annotations

from draftsman.ids import worker_name
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.dashboard.pilot import open_dashboard


async def test_worker_has_the_same_name_in_every_table_and_dialog(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    worker = await make.worker_row(id=make.worker, host="far", pid=4711)
    name = worker_name(worker)
    work = await make.running()
    async with open_dashboard(rt, owner, view="workers", size=(140, 30)) as seen:
        for view in ("runs", "events", "workers"):
            await seen.command(view)
            await seen.see(f" {view} · ", name)
            assert str(worker) not in seen.text
            assert "far:4711" not in seen.text
        await seen.command("jobs")
        await seen.rows(work.name)
        await seen.press("w")
        await seen.see(f"worker {name} on far is running it")
        await seen.press("escape")
        await seen.job(work.name)
        await seen.see(f"worker {name} on far is running it")
        await seen.read(f"worker {name}")
