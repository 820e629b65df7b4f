"""The `limits` command group: limits of concurrency and rates, their use and their changes."""

from __future__ import annotations

from typing import Final

from draftsman.entities.limits import LIMIT_CHANGES, LIMITS
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import print_list

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
async def history(app: App) -> None:
    """List changes of the limits, newest first."""
    async with app.runtime(read_only=True) as rt:
        changes = await rt.queues.limit_changes()
    print_list(app, LIMIT_CHANGES, changes)
