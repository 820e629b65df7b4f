"""A process without a worker sends deliveries as soon as they are due."""

from __future__ import annotations

from pathlib import Path

from draftsman.database.database import Database
from draftsman.deliveries.channels.log_channel import LogChannel
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import wire
from draftsman.settings import Settings
from draftsman_testing.waits import background, until


async def test_delivery_process_wakes_for_due_deliveries(
    settings: Settings, db: Database, owner: Actor, tmp_path: Path
) -> None:
    notifications = settings.notifications.model_copy(update={"poll": 60.0})
    rt = wire(settings.model_copy(update={"notifications": notifications}), db, False)
    path = tmp_path / "said.jsonl"
    process = rt.delivery_process([LogChannel(path)])

    async def asked() -> str:
        asks = invocation(type="echo", text="x", notify=("log",))
        return (await rt.submissions.submit(asks, owner)).name

    async def said(name: str) -> None:
        async def look() -> bool:
            return path.exists() and name in path.read_text()

        await until(look, f"{name} in the log")

    first = await asked()
    async with background(process.run()) as running:
        await said(first)
        await said(await asked())
        process.stop.set()
        await running
