"""The `queues` and `limits` command groups: queues, their pauses, and limits on what runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from draftsman.actions import queues as actions
from draftsman.entities.limits import LIMIT_CHANGES, LIMITS
from draftsman.entities.queues import QUEUE_CHANGES, QUEUES
from draftsman.errors import RejectedField
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import list_rows, print_list
from draftsman_tui.cli.perform import perform
from draftsman_tui.terminal import params

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
    with _unchecked_named():
        await perform(app, actions.pause, name, reason=reason, type=type, unchecked=unchecked)


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
    await perform(app, actions.resume, name, type=type)


@queues.subcommand(
    "drain",
    examples=("draftsman queues drain default", "draftsman queues drain default --timeout 10m"),
    does=(actions.drain,),
)
@click.argument("name", type=params.TEXT)
@click.option("--type", type=params.TEXT, help="Drain this job type only.")
@click.option(
    "--reason",
    type=params.TEXT,
    default=actions.DRAIN_REASON,
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
    with _unchecked_named():
        await perform(
            app,
            actions.drain,
            name,
            reason=reason,
            type=type,
            seconds=timeout,
            unchecked=unchecked,
        )


@queues.subcommand(
    "release",
    examples=("draftsman queues release default", "draftsman queues release default --yes"),
    does=(actions.release,),
)
@click.argument("name", type=params.TEXT)
async def release(app: App, name: str, yes: bool) -> None:
    """End the reservation of a queue.

    The reserving job continues: if it has not started, it takes its place in the queue.
    """
    await perform(app, actions.release, name, yes=yes)


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


@contextmanager
def _unchecked_named() -> Iterator[None]:
    """Name the option that accepts an unknown queue or type."""
    try:
        yield
    except RejectedField as error:
        raise error.reworded(f"{error.reason}; to name it anyway, use --unchecked") from None


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
