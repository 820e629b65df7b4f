"""The `limits` command group: limits of concurrency and rates, their use and their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman.ids import actor_name
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.terminal.output import one_line

if TYPE_CHECKING:
    from draftsman.queues.usage_limits import LimitUse


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


@limits.subcommand("list", examples=("draftsman limits list", "draftsman limits list --json"))
async def list_limits(app: App) -> None:
    """List each limit with its use.

    RUNNING counts jobs that may be claimed, are claimed or run. STARTED counts starts in the last
    period. NEXT is the next start that a rate allows, while jobs wait for it.
    """
    async with app.runtime(read_only=True) as rt:
        uses = await rt.queues.limits()
    if app.json:
        app.out.document(uses)
    elif not uses:
        app.out.info(_no_limits(app))
    else:
        heads = ("LIMIT", "RUNNING", "STARTED", "WAITING", "NEXT", "JOBS")
        app.out.table(heads, [_row(use) for use in uses], flexible=5, right=(3,))


@limits.subcommand(
    "history", examples=("draftsman limits history", "draftsman limits history --json")
)
async def history(app: App) -> None:
    """List changes of the limits, newest first."""
    async with app.runtime(read_only=True) as rt:
        changes = await rt.queues.limit_changes()
    if app.json:
        app.out.document(changes)
    elif not changes:
        app.out.info("the limits have not changed yet")
    else:
        rows = [
            (times.ago(change.created_at), actor_name(change.actor), one_line(change.text))
            for change in changes
        ]
        app.out.table(("WHEN", "BY", "LIMITS"), rows, flexible=2)


def _no_limits(app: App) -> str:
    if app.settings.limits.rules():
        return (
            "no limits yet: the leader writes those of [limits] at the start of its term; to start"
            " a worker: draftsman up"
        )
    return "no limits; they are configured in [limits]: draftsman config"


def _row(use: LimitUse) -> tuple[str, ...]:
    running = ""
    started = ""
    if use.running is not None:
        running = f"{use.running} each" if use.is_rule else f"{use.taken} of {use.running}"
    elif not use.is_rule:
        running = str(use.taken)
    if use.rate is not None:
        count = "" if use.is_rule or use.burst is not None else f"{use.started} of "
        started = count + use.rate_text
    waiting = "" if use.is_rule else f"{use.waiting:,}"
    following = f"{use.next_at:%H:%M:%S}" if use.next_at else ""
    return one_line(use.title), running, started, waiting, following, use.job_names
