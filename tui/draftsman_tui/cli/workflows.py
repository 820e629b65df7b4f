"""The `groups` command group: list, show and cancel groups of jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from draftsman.actions.jobs import cancel_group
from draftsman.entities.groups import GROUPS, group_data
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.ids import account_name
from draftsman.text import first_line
from draftsman.workflows.groups import MEANINGS
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.jobs.jobs import next_steps_of
from draftsman_tui.cli.lists import print_list, rows_to_read
from draftsman_tui.cli.perform import perform
from draftsman_tui.common.jobs import status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.workflows.groups import GroupMember


@command_group(
    "groups",
    section="Jobs",
    cls=ListGroup,
    examples=(
        "draftsman groups",
        "draftsman groups show release",
        "draftsman groups cancel release --reason 'wrong version'",
    ),
)
def groups() -> None:
    """List, show and cancel groups of jobs.

    The jobs of a parallel group run independently; those of a sequential group one by one. A group
    is created by draftsman submit --group NAME with --parallel or --sequential.
    """


@groups.subcommand(
    "list", examples=("draftsman groups list", "draftsman groups list --json"), lists=GROUPS
)
@params.limit_option("groups")
async def list_groups(app: App, limit: int) -> None:
    """List groups, newest first."""
    async with app.runtime(read_only=True) as rt:
        job_groups = await rt.workflows.groups.all(rows_to_read(app, limit))
    print_list(app, GROUPS, job_groups, limit=limit)


@groups.subcommand(
    "show", examples=("draftsman groups show release", "draftsman groups show release --json")
)
@click.argument("name", type=params.TEXT)
@params.limit_option("jobs", default=1000, most=10_000)
async def show(app: App, name: str, limit: int) -> None:
    """Show the progress of a group, and its jobs in order.

    Of a job that was retried, the newest retry is shown; NEXT says what an unfinished job waits for
    as in draftsman jobs, and why a job was canceled or failed.
    """
    async with app.runtime(read_only=True) as rt:
        group = await rt.workflows.groups.get(name)
        members = await rt.workflows.groups.members(name, limit)
        unfinished = [item.number for item in members if item.finished_at is None]
        next_steps = {} if app.json else await next_steps_of(rt, unfinished)
    if app.json:
        app.out.document(group_data(group) | {"jobs": [asdict(member) for member in members]})
        return
    state = styled(str(group.state), STYLES[MEANINGS[group.state]])
    app.out.print(line(styled(group.name, "bold"), "  ", state, f"  {group.progress}"))
    by = f"created by {account_name(group.created_by)} {times.ago(group.created_at)}"
    app.out.print(f"{group.kind}, on failure: {group.on_failure}; {by}")
    if group.canceled_by is not None:
        reason = f": {one_line(group.cancel_reason)}" if group.cancel_reason else ""
        app.out.print(f"canceled by {account_name(group.canceled_by)}{reason}")
    rows = [
        (
            styled(member.name, "bold"),
            status_text(member.status),
            first_line(member.title or member.type, 60),
            next_steps.get(member.number) or _reason(member),
        )
        for member in members
    ]
    app.out.table(("JOB", "STATUS", "TITLE", "NEXT"), rows, flexible=3)
    if len(members) < group.total:
        app.out.info(f"{group.total - len(members):,} more jobs; to list them, use --limit")


@groups.subcommand(
    "cancel",
    examples=(
        "draftsman groups cancel release",
        "draftsman groups cancel release --reason 'wrong version' --yes",
    ),
    does=(cancel_group,),
)
@click.argument("name", type=params.TEXT)
@click.option("--reason", type=params.TEXT, help="Reason, recorded in the event history.")
async def cancel(app: App, name: str, reason: str | None, yes: bool) -> None:
    """Cancel the unfinished jobs of a group.

    Running jobs are asked to stop first. Jobs that are added later are canceled at once.
    """
    await perform(app, cancel_group, name, reason=reason or "", yes=yes)


def _reason(member: GroupMember) -> str:
    """Return why a finished job was canceled or failed."""
    return one_line(first_line(member.reason or member.error or "", 120))
