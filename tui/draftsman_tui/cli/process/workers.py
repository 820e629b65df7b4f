"""`workers`, `sweep` and `stats`: the machinery at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.ids import worker_name
from draftsman.domain.job import Status
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.common import params, times
from draftsman_tui.common.job_text import status_text
from draftsman_tui.common.output import as_data, line, styled
from draftsman_tui.common.worker_health import health_of

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.services.maintenance.archives import RetentionMonth


@command("workers", examples=("draftsman workers", "draftsman workers --json | jq '.[].health'"))
async def workers(app: App) -> None:
    """List the workers and how they are.

    A worker is lost when its process is gone, or when it was silent for as long as its lease.
    """
    async with app.runtime(read_only=True) as rt:
        found = await rt.read_model.workers()
    health = [health_of(one, app.settings) for one in found]
    if app.json:
        pairs = zip(found, health, strict=True)
        app.out.document([as_data(one) | {"health": how} for one, how in pairs])
    elif not found:
        app.out.info("no worker is running; start one: draftsman up")
    else:
        heads = ("WORKER", "HEALTH", "BUSY", "HOST", "PID", "QUEUES", "BEAT", "STARTED", "ROLE")
        rows = [_row(one, how) for one, how in zip(found, health, strict=True)]
        app.out.table(heads, rows, flexible=(3, 5), right=(2, 4))


@command(
    "sweep",
    examples=("draftsman sweep expire", "draftsman sweep prune --dry-run"),
)
@click.argument("name", type=params.TEXT)
@click.option("--dry-run", is_flag=True, help="Of prune: change nothing, say what can be pruned.")
async def sweep(app: App, name: str, dry_run: bool) -> None:
    """Run one sweep of the leader now.

    NAME is expire (questions whose time is over), remind (of a question at half and at 90 % of its
    time), promote (jobs that are due), rescue (what dead workers held), reap (dead workers), notify
    (dead letters that nobody was notified of), partitions (the coming months of the events) or
    prune (archive and drop one old month of the events, and old logs, as [retention] says).
    """
    if dry_run and name != "prune":
        raise UsageError(f"--dry-run is for prune; {name!r} has none")
    async with app.runtime(read_only=dry_run) as rt:
        count = 0 if dry_run else await rt.sweeps.run_now(name, await rt.actor())
        months = await rt.archives.plan() if name == "prune" else []
    if dry_run:
        _print_plan(app, months)
        return
    if app.json:
        app.out.document({"sweep": name, "changed": count})
        return
    app.out.print(f"{name}: changed {count} row{'' if count == 1 else 's'}")
    for month in months:
        app.out.info(f"{month.month:%Y-%m}: {month.how}")


def _print_plan(app: App, months: Sequence[RetentionMonth]) -> None:
    """Print the months that are older than the retention."""
    if app.json:
        app.out.document([as_data(one) | {"how": one.how} for one in months])
    elif app.settings.retention.events is None:
        app.out.info("the trail is kept for ever: retention.events is unset")
    elif not months:
        app.out.info("no month of the trail is older than retention.events")
    else:
        rows = [(f"{one.month:%Y-%m}", f"{one.events:,}", one.how) for one in months]
        app.out.table(("MONTH", "EVENTS", "HOW"), rows, flexible=2, right=(1,))


@command("stats", examples=("draftsman stats", "draftsman stats --json | jq .jobs.queued"))
async def stats(app: App) -> None:
    """Count everything.

    Jobs by status, open questions, workers and their slots, answers of the last day. Jobs that have
    ended are counted up to 10,000 of a status: 10,000+ says that there are more.
    """
    async with app.runtime(read_only=True) as rt:
        found = await rt.read_model.stats()
    if app.json:
        app.out.document(found)
        return
    jobs = [(status, count) for status, count in found.jobs.items() if count]
    for status, count in jobs:
        more = "+" if status in found.at_least else " "
        app.out.print(line(f"{count:>9,}{more} ", status_text(Status(status))))
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
        styled(worker_name(worker.id), "bold"),
        styled(health, style),
        f"{worker.busy}/{worker.slots}",
        worker.host,
        str(worker.pid),
        ", ".join(worker.queues),
        times.span(worker.silent),
        times.ago(worker.started_at),
        "leader" if worker.leader else "",
    ]
