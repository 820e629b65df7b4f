"""The `retry` command: retry finished jobs, named or matching a filter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import jobs as actions
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.text import first_line
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.perform import confirm_matching, numbers_of, perform_each
from draftsman_tui.common.jobs import status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.jobs.job_summary import FinishedJob
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class RetryFilter:
    """Filter of the jobs to retry, from the options of the command."""

    status: tuple[tuple[Status, ...], ...]
    type: str | None
    agent: str | None
    repo: str | None
    since: float | None

    @property
    def statuses(self) -> list[Status]:
        """The values of --status, which is repeatable."""
        return [status for group in self.status for status in group]

    @property
    def conditions(self) -> list[str]:
        """The options that are set beside --status."""
        options = {
            "--type": self.type,
            "--agent": self.agent,
            "--repo": self.repo,
            "--since": self.since,
        }
        return [option for option, value in options.items() if value]

    async def matching(self, rt: Runtime) -> list[FinishedJob]:
        """Return the jobs that match, oldest first."""
        return await rt.finished_jobs.matching(
            self.statuses,
            type=self.type,
            agent=self.agent,
            repo=self.repo,
            since=self.since,
        )


@command(
    "retry",
    section="Control of jobs",
    examples=(
        "draftsman retry D-142",
        "draftsman retry D-140 D-141 --fresh",
        "draftsman retry D-142 --with-answer",
        "draftsman retry --status dead_letter --type llm_generate --since 2h --dry-run",
        "draftsman retry --status failed,dead_letter --repo acme/pay --yes",
    ),
    does=(actions.retry,),
)
@click.argument("jobs", metavar="[JOB...]", nargs=-1, type=params.JOB)
@click.option("--status", type=params.STATUS, multiple=True, help="Retry all with this status.")
@click.option("--type", type=params.TEXT, help="With --status: filter by type.")
@click.option("--agent", type=params.AGENT, help="With --status: filter by agent.")
@click.option("--repo", type=params.REPO, help="With --status: filter by repository.")
@click.option("--since", type=params.DURATION, help="With --status: finished within, e.g. 2h.")
@click.option("--dry-run", is_flag=True, help="List the matching jobs without retrying them.")
@params.yes_option
@click.option("--fresh", is_flag=True, help="Start over, without the last checkpoint.")
@click.option("--again", is_flag=True, help="Include completed jobs.")
@click.option("--alone", is_flag=True, help="Do not retry the jobs that it caused to be skipped.")
@click.option("--with-answer", is_flag=True, help="Use the answer that arrived too late.")
async def retry(
    app: App,
    jobs: tuple[JobRef, ...],
    dry_run: bool,
    yes: bool,
    fresh: bool,
    again: bool,
    alone: bool,
    with_answer: bool,
    **options: Any,
) -> None:
    """Retry finished jobs.

    Each retry is a new job that starts from the last checkpoint. Its questions are asked again.
    Retrying a job a second time returns its existing retry. Jobs that were skipped because it did
    not complete are retried with it, and wait for the retry; --alone leaves them out.

    With --status, retries every matching job that has not been retried yet, after a confirmation.
    If interrupted, run the same command again to continue. Exits with 1 if a job could not be
    retried.
    """
    job_filter = RetryFilter(**options)
    statuses = job_filter.statuses
    conditions = job_filter.conditions + ["--dry-run"] * dry_run
    if not statuses and conditions:
        raise UsageError(f"{conditions[0]} requires --status, e.g. --status dead_letter")
    if bool(jobs) == bool(statuses):
        raise UsageError("specify either jobs or --status, e.g. --status dead_letter")
    for option, is_set in (("--with-answer", with_answer), ("--alone", alone)):
        if statuses and is_set:
            raise UsageError(f"{option} cannot be combined with --status; name the jobs")
    async with app.runtime(read_only=dry_run) as rt:
        numbers, unknown = await numbers_of(app, rt, jobs)
        if not jobs:
            matching = await job_filter.matching(rt)
            new = [job for job in matching if job.followed_by is None]
            if retried := len(matching) - len(new):
                app.out.info(
                    f"{counted(retried, 'matching job was', 'matching jobs were')} already retried"
                )
            if dry_run:
                _list(app, new)
                return
            if not new:
                _print_none(app)
                return
            numbers = confirm_matching(app, actions.retry, new, yes=yes)
        await perform_each(
            app,
            rt,
            actions.retry,
            numbers,
            name=job_name,
            key="retry_of",
            data=lambda number, new: {"retry_of": number, **as_data(new), "error": None},
            unknown=unknown,
            after=partial(_print_links, app, rt) if jobs and not app.json else None,
            as_list=True,
            fresh=fresh,
            again=again,
            with_answer=with_answer,
            alone=alone,
        )


async def _print_links(app: App, rt: Runtime, number: int, retry: SubmittedJob) -> None:
    """Print for which jobs a retry does not wait, and how many wait for it."""
    if causes := await rt.workflows.causes(number):
        names = " ".join(map(job_name, causes))
        app.out.info(
            f"{job_name(number)} was skipped because of {names}, which its retry does not wait"
            f" for; to repeat both, use: draftsman retry {names}"
        )
    if waiting := await rt.workflows.waiting_count(retry.number):
        count = counted(waiting, "job waits", "jobs wait")
        app.out.info(f"{count} for it: draftsman show {retry.name} --tree")


def _print_none(app: App) -> None:
    if app.json:
        app.out.document([])
    else:
        app.out.info("no jobs to retry; to list dead letters: draftsman jobs --status dead_letter")


def _list(app: App, jobs: list[FinishedJob]) -> None:
    if app.json:
        app.out.document(jobs)
    elif jobs:
        rows = [
            (
                styled(job_name(job.number), "bold"),
                status_text(job.status),
                first_line(job.ticket_title or job.type, 30),
                times.ago(job.finished_at),
                first_line(job.last_error or ""),
            )
            for job in jobs
        ]
        app.out.table(("JOB", "STATUS", "TITLE", "FINISHED", "ERROR"), rows, flexible=4)
    if not app.json:
        app.out.info(f"{counted(len(jobs), 'job')} would be retried")
