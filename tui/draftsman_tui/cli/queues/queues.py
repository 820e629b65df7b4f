"""The `queues` and `limits` command groups: queues, their pauses, and limits on what runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from draftsman.actions import queues as actions
from draftsman.entities.limits import LIMIT_CHANGES, LIMITS
from draftsman.entities.queues import QUEUE_CHANGES, QUEUES
from draftsman.errors import DraftsmanError, RejectedField
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.ids import job_name, pause_name
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import list_rows, print_list
from draftsman_tui.cli.perform import call_of, confirm_action, print_result
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.queues.service.queues import DrainProgress
    from draftsman.runtime import Runtime


DRAIN_REASON = "draining"
"""Reason of the pause of a drain, unless it is given."""
SHOWN_JOBS = 5
"""Jobs that a line of progress names."""
_UNCHECKED = click.option(
    "--unchecked", is_flag=True, help="Accept a queue or type that is not known yet."
)


@command_group(
    "queues",
    section="Queues and costs",
    cls=ListGroup,
    examples=(
        "draftsman queues",
        "draftsman queues pause default --reason 'disk is full'",
        "draftsman queues pause default --type run_agent --reason 'model is down'",
        "draftsman queues resume default",
        "draftsman queues drain default",
        "draftsman queues release default",
    ),
)
def queues() -> None:
    """List, pause, resume, drain and release queues.

    A worker claims no job of a paused queue or type. Jobs that already run continue, and new
    requests are accepted and wait. Of a queue that is reserved (draftsman run --now), only the
    reserving job is claimed until the queue is released.
    """


queues.subcommand(
    "list", examples=("draftsman queues list", "draftsman queues list --json"), lists=QUEUES
)(list_rows(QUEUES))


@queues.subcommand(
    "pause",
    examples=(
        "draftsman queues pause default --reason 'disk is full'",
        "draftsman queues pause default --type run_agent --reason 'model is down'",
    ),
    does=(actions.pause,),
)
@click.argument("name", type=params.TEXT)
@click.option("--type", type=params.TEXT, help="Pause this job type only.")
@click.option("--reason", type=params.TEXT, required=True, help="Reason, shown by why.")
@_UNCHECKED
async def pause(app: App, name: str, type: str | None, reason: str, unchecked: bool) -> None:
    """Pause a queue, or a job type in it.

    An unknown queue is refused: it has no jobs, no worker and no setting.
    """
    async with app.runtime() as rt:
        if not unchecked:
            await _require_known(rt, name, type)
        result = await actions.pause(await call_of(rt), name, reason, type)
    data = {"queue": name, "type": type, "paused": True, "held": result.value}
    print_result(app, result, data)


@queues.subcommand(
    "resume",
    examples=(
        "draftsman queues resume default",
        "draftsman queues resume default --type run_agent",
    ),
    does=(actions.resume,),
)
@click.argument("name", type=params.TEXT)
@click.option("--type", type=params.TEXT, help="Resume this job type.")
async def resume(app: App, name: str, type: str | None) -> None:
    """Resume a paused queue, or a paused job type in it."""
    async with app.runtime() as rt:
        result = await actions.resume(await call_of(rt), name, type)
    data = {"queue": name, "type": type, "paused": False, "released": result.value}
    print_result(app, result, data)


@queues.subcommand(
    "drain",
    examples=("draftsman queues drain default", "draftsman queues drain default --timeout 10m"),
)
@click.argument("name", type=params.TEXT)
@click.option("--type", type=params.TEXT, help="Drain this job type only.")
@click.option(
    "--reason",
    type=params.TEXT,
    default=DRAIN_REASON,
    show_default=True,
    help="Reason, shown by why.",
)
@click.option("--timeout", type=params.DURATION, help="Stop waiting after this time, e.g. 10m.")
@_UNCHECKED
async def drain(
    app: App, name: str, type: str | None, reason: str, timeout: float | None, unchecked: bool
) -> None:
    """Pause a queue, and wait until no job of it is running.

    The queue stays paused. Exits with 1 if jobs still run after the timeout.
    """
    progress: DrainProgress | None = None
    async with app.runtime() as rt:
        if not unchecked:
            await _require_known(rt, name, type)
        try:
            async with asyncio.timeout(timeout):
                printed_text = ""
                async for progress in rt.queues.drain(name, await rt.actor(), reason, type):
                    if (text := _progress(progress)) != printed_text and not progress.finished:
                        app.out.info(f"{name}: {text}")
                        printed_text = text
        except TimeoutError:
            pass
    finished = progress is not None and progress.finished
    if app.json:
        running = progress.running if progress else []
        app.out.document({"queue": name, "type": type, "drained": finished, "running": running})
    elif finished:
        app.out.print(f"drained: nothing of the {pause_name(name, type)} runs; it stays paused")
    if not finished:
        text = _progress(progress) if progress else "its jobs were not counted"
        raise DraftsmanError(
            f"the {pause_name(name, type)} is paused, but not drained after"
            f" {times.span(timeout or 0)}: {text}"
        )


@queues.subcommand(
    "release",
    examples=("draftsman queues release default", "draftsman queues release default --yes"),
    does=(actions.release,),
)
@click.argument("name", type=params.TEXT)
@params.yes_option
async def release(app: App, name: str, yes: bool) -> None:
    """End the reservation of a queue.

    The reserving job continues: if it has not started, it takes its place in the queue.
    """
    async with app.runtime() as rt:
        reservations = await rt.reservations.all()
        reserved = next((item for item in reservations if item.queue == name), None)
        if reserved is not None:
            note = actions.reserved(reserved)
            confirm_action(app, actions.release, repr(name), yes=yes, note=note)
        result = await actions.release(await call_of(rt), name)
    print_result(app, result, {"queue": name, "released": True, "job": result.value})


@queues.subcommand(
    "history",
    examples=("draftsman queues history", "draftsman queues history default"),
    lists=QUEUE_CHANGES,
)
@click.argument("name", type=params.TEXT, required=False)
async def history(app: App, name: str | None) -> None:
    """List who paused, resumed, reserved and released queues, newest first."""
    async with app.runtime(read_only=True) as rt:
        changes = await rt.queues.changes(name)
    print_list(app, QUEUE_CHANGES, changes)


async def _require_known(rt: Runtime, name: str, type: str | None) -> None:
    """Raise NotFound for an unknown queue, and UsageError for an unknown type."""
    try:
        await rt.queues.require_known(name, type, await rt.actor(), rt.request_checks)
    except RejectedField as error:
        raise error.reworded(f"{error.reason}; to name it anyway, use --unchecked") from None


def _progress(progress: DrainProgress) -> str:
    names = ", ".join(map(job_name, progress.running[:SHOWN_JOBS]))
    ellipsis = ", …" if len(progress.running) > SHOWN_JOBS else ""
    if not progress.running:
        return f"waiting for {progress.claims} claims that began before the pause"
    count = len(progress.running)
    return f"{counted(count, 'job')} still running: {names}{ellipsis}"


NOT_WRITTEN: Final = (
    "no limits yet: the leader writes those of [limits] at the start of its term; to start a"
    " worker: draftsman up"
)


@command_group(
    "limits",
    section="Queues and costs",
    cls=ListGroup,
    examples=("draftsman limits", "draftsman limits history"),
)
def limits() -> None:
    """Show limits of concurrency and rates, and their use.

    The limits are those of [limits] in the configuration of the leader, for all workers.
    """


@limits.subcommand(
    "list", examples=("draftsman limits list", "draftsman limits list --json"), lists=LIMITS
)
async def list_limits(app: App) -> None:
    """List each limit with its use."""
    async with app.runtime(read_only=True) as rt:
        uses = await rt.queues.limits()
    is_written = uses or app.json or not app.settings.limits.rules()
    print_list(app, LIMITS, uses, "" if is_written else NOT_WRITTEN)


@limits.subcommand(
    "history",
    examples=("draftsman limits history", "draftsman limits history --json"),
    lists=LIMIT_CHANGES,
)
async def limit_history(app: App) -> None:
    """List changes of the limits, newest first."""
    async with app.runtime(read_only=True) as rt:
        changes = await rt.queues.limit_changes()
    print_list(app, LIMIT_CHANGES, changes)
