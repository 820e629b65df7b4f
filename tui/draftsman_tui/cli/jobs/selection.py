"""Selection of jobs by `--status` and other filters, for commands that act on many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.entities.filter_values import unknown_value
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.jobs.job_summary import settled_lines
from draftsman.text import first_line
from draftsman_tui.cli.app import App
from draftsman_tui.cli.perform import confirm_matching
from draftsman_tui.common.jobs import status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.actions.action import Action
    from draftsman.ids import JobRef
    from draftsman.jobs.job_summary import FinishedJob, JobSummary
    from draftsman.runtime import Runtime


def filter_options(verb: str, since: str) -> params.Option:
    """Return the options that select jobs; `since` names the time of a job that is compared."""
    return params.together(
        click.option(
            "--status", type=params.STATUS, multiple=True, help=f"{verb} all with this status."
        ),
        click.option("--type", type=params.TEXT, help="With --status: filter by type."),
        click.option("--agent", type=params.AGENT, help="With --status: filter by agent."),
        click.option("--repo", type=params.REPO, help="With --status: filter by repository."),
        click.option("--queue", type=params.TEXT, help="With --status: filter by queue."),
        click.option(
            "--tag", "tags", type=params.TEXT, multiple=True, help="With --status: filter by tag."
        ),
        click.option("--mine", is_flag=True, help="With --status: only jobs that you submitted."),
        params.period_options("", f"With --status: {since}, e.g. 2h, or since 2026-11-30."),
        click.option("--dry-run", is_flag=True, help="List the matching jobs, and change nothing."),
    )


def filters_of(
    jobs: Sequence[JobRef], options: dict[str, Any], example: str, *, dry_run: bool
) -> dict[str, Any]:
    """Return the filters, with the `statuses`, of which `example` is one that fits.

    Raises UsageError unless jobs or these are given.
    """
    statuses = [status for group in options.pop("status") for status in group]
    others = [name for name, value in (options | {"dry-run": dry_run}).items() if value]
    if others and not statuses:
        option = others[0].removesuffix("s")
        raise UsageError(f"--{option} requires --status, e.g. --status {example}")
    if bool(jobs) == bool(statuses):
        raise UsageError(f"specify either jobs or --status, e.g. --status {example}")
    params.check_period(options["since"], options["until"])
    return options | {"statuses": statuses}


async def finished_jobs(rt: Runtime, filters: Mapping[str, Any]) -> list[FinishedJob]:
    """Return the finished jobs that match the filters, oldest first; raises UsageError."""
    filters = {**filters}
    statuses = filters.pop("statuses")
    invoker = (await rt.actor()).voter if filters.pop("mine") else None
    return await rt.finished_jobs.matching(statuses, invoker=invoker, **filters)


def not_settled(app: App, jobs: Sequence[FinishedJob]) -> list[FinishedJob]:
    """Return the jobs that a person may still see to, and print how many others there are."""
    for text in settled_lines(jobs):
        app.out.info(text)
    return [job for job in jobs if not job.settled]


FINISHED_COLUMNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "FINISHED": lambda job: times.ago(job.finished_at),
    "ERROR": lambda job: first_line(job.last_error or ""),
}


async def confirm_selected(
    app: App,
    rt: Runtime,
    action: Action[int, ..., Any],
    matching: Sequence[JobSummary | FinishedJob],
    columns: Mapping[str, Callable[[Any], str]] = FINISHED_COLUMNS,
    *,
    filters: Mapping[str, Any],
    done: str,
    empty: str,
    dry_run: bool,
    yes: bool,
) -> list[int]:
    """Return the numbers of the matching jobs after a confirmation; none if nothing is to be done.

    Then it prints the jobs of a dry run with further `columns`, or that there are none, and which
    value of the `filters` is unknown.
    """
    if matching and not dry_run:
        return confirm_matching(app, action, matching, yes=yes)
    unknown = "" if matching else await unknown_value(rt, filters)
    if app.json:
        app.out.document(matching)
    if unknown:
        app.out.info(unknown)
    if app.json or unknown:
        return []
    if matching:
        rows: list[Sequence[Text | str]] = [
            (
                styled(job_name(job.number), "bold"),
                status_text(job.status),
                first_line(job.title, 60),
                *(text(job) for text in columns.values()),
            )
            for job in matching
        ]
        flexible = (2, 2 + len(columns))
        app.out.table(("JOB", "STATUS", "TITLE", *columns), rows, flexible=flexible)
    if dry_run:
        app.out.info(f"{counted(len(matching), 'job')} would be {done}")
    else:
        app.out.info(empty)
    return []
