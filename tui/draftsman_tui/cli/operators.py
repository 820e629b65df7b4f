"""`workers`, `sweep` and `stats`: the machinery at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.job import Status
from draftsman_tui.cli import params, times
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.health import health_of
from draftsman_tui.cli.jobs import status_text
from draftsman_tui.cli.output import as_data, line, words

if TYPE_CHECKING:
    from rich.text import Text


@command("workers", examples=("draftsman workers", "draftsman workers --json | jq '.[].health'"))
async def workers(app: App) -> None:
    """List the workers and how they are.

    A worker is lost when its process is gone, or when it was silent for as long as its lease.
    """
    async with app.runtime(read_only=True) as rt:
        found = await rt.inspect.workers()
    health = [health_of(one, app.settings) for one in found]
    if app.json:
        pairs = zip(found, health, strict=True)
        app.out.document([as_data(one) | {"health": how} for one, how in pairs])
    elif not found:
        app.out.say("no worker is running; start one: draftsman up")
    else:
        heads = ("WORKER", "HEALTH", "BUSY", "QUEUES", "BEAT", "STARTED", "ROLE")
        rows = [_row(one, how) for one, how in zip(found, health, strict=True)]
        app.out.table(heads, rows, flexible=3, right=(2,))


@command("sweep", examples=("draftsman sweep expire", "draftsman sweep rescue"))
@click.argument("name", type=params.TEXT)
async def sweep(app: App, name: str) -> None:
    """Run one sweep of the leader now.

    NAME is expire (questions whose time is over), promote (what is due), rescue (what dead
    workers held), reap (dead workers) or partitions (the trail's coming months).
    """
    async with app.runtime() as rt:
        count = await rt.sweeps.by_hand(name, await rt.actor())
    if app.json:
        app.out.document({"sweep": name, "changed": count})
    else:
        app.out.print(f"{name}: changed {count} row{'' if count == 1 else 's'}")


@command("stats", examples=("draftsman stats", "draftsman stats --json | jq .jobs.queued"))
async def stats(app: App) -> None:
    """Count everything.

    Jobs by status, open questions, workers and their slots, answers of the last day.
    """
    async with app.runtime(read_only=True) as rt:
        found = await rt.inspect.stats()
    if app.json:
        app.out.document(found)
        return
    jobs = [(status, count) for status, count in found.jobs.items() if count]
    for status, count in jobs:
        app.out.print(line(f"{count:>9,}  ", status_text(Status(status))))
    if not jobs:
        app.out.print("        0  jobs")
    soon = f", {found.expiring_within_an_hour} within an hour" if found.next_expiry else ""
    following = f"; the next expires {times.left(found.next_expiry)}" if found.next_expiry else ""
    took = (
        f", half of them within {times.span(found.answer_seconds)}" if found.answer_seconds else ""
    )
    app.out.print(
        f"{found.open_questions:>9,}  open questions{following}{soon}",
        f"{found.workers:>9,}  workers, {found.busy} of {found.slots} slots busy",
        f"{found.answers_last_day:>9,}  answers in the last day{took}",
    )


def _row(worker: Any, health: str) -> list[Text | str]:
    style = {"alive": "green", "draining": "yellow", "silent": "yellow", "lost": "red"}[health]
    return [
        words(f"{worker.host}:{worker.pid}", "bold"),
        words(health, style),
        f"{worker.busy}/{worker.slots}",
        ", ".join(worker.queues),
        times.span(worker.silent),
        times.ago(worker.started_at),
        "leader" if worker.leader else "",
    ]
