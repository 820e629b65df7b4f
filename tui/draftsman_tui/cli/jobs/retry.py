"""The `retry` command: retry finished jobs, named or matching a filter."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.errors import DraftsmanError, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.text import first_line
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.jobs import status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.jobs.control.service.bulk_retry import RetryResult
    from draftsman.jobs.job_summary import FinishedJob
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime

PROGRESS_INTERVAL: Final = 2.0
"""Seconds between progress messages."""


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
        return await rt.bulk_retry.matching(
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
        if jobs:
            retry_options = {
                "fresh": fresh,
                "again": again,
                "with_answer": with_answer,
                "alone": alone,
            }
            await _retry_each(app, rt, jobs, retry_options)
            return
        matching = await job_filter.matching(rt)
        new = [job for job in matching if job.followed_by is None]
        if retried := len(matching) - len(new):
            app.out.info(
                f"{counted(retried, 'matching job was', 'matching jobs were')} already retried"
            )
        if dry_run:
            _list(app, new)
        elif new:
            _confirm(app, new, yes)
            await _retry_all(app, rt, [job.number for job in new], fresh=fresh, again=again)
        elif app.json:
            app.out.document([])
        else:
            app.out.info(
                "no jobs to retry; to list dead letters: draftsman jobs --status dead_letter"
            )


async def _retry_each(
    app: App, rt: Runtime, jobs: tuple[JobRef, ...], options: dict[str, bool]
) -> None:
    retries: list[dict[str, Any]] = []
    errors: list[DraftsmanError] = []
    actor = await rt.actor()
    for job in jobs:
        try:
            retries.append(await _retry(app, rt, job, actor, options))
        except DraftsmanError as error:
            if error.exit_code == 6:
                raise
            errors.append(error)
    if app.json:
        app.out.document(retries)
    for earlier in errors[:-1]:
        app.out.info(f"draftsman: {earlier}")
    if errors:
        raise errors[-1]


async def _retry(
    app: App, rt: Runtime, job: JobRef, actor: Actor, options: dict[str, bool]
) -> dict[str, Any]:
    number = await number_of(rt, job)
    retry = await rt.job_control.retry(number, actor, **options)
    if not app.json:
        app.out.print(
            line(styled(retry.name, "bold"), f" {retry.outcome}: retry of {job_name(number)}")
        )
        if causes := await rt.workflows.causes(number):
            names = " ".join(map(job_name, causes))
            app.out.info(
                f"{job_name(number)} was skipped because of {names}, which its retry does not wait"
                f" for; to repeat both, use: draftsman retry {names}"
            )
        if waiting := await rt.workflows.waiting_count(retry.number):
            count = counted(waiting, "job waits", "jobs wait")
            app.out.info(f"{count} for it: draftsman show {retry.name} --tree")
    return {"retry_of": number, **as_data(retry)}


async def _retry_all(app: App, rt: Runtime, numbers: list[int], **options: bool) -> None:
    """Retry the jobs and print each result and the progress; raises if any failed."""
    results: list[RetryResult] = []
    last_progress = time.monotonic()
    try:
        async for result in rt.bulk_retry.retry(numbers, await rt.actor(), **options):
            results.append(result)
            _print_result(app, result)
            if time.monotonic() - last_progress > PROGRESS_INTERVAL:
                last_progress = time.monotonic()
                app.out.info(f"{len(results):,} of {len(numbers):,}")
    finally:  # jobs created before an interruption are printed as well
        if app.json:
            app.out.document([_as_row(result) for result in results])
        if (left := len(numbers) - len(results)) > 0:
            app.out.info(
                f"interrupted: {left:,} of {len(numbers):,} jobs not retried yet;"
                " run the command again to continue"
            )
    if failed := sum(result.made is None for result in results):
        raise DraftsmanError(f"{failed:,} of {len(results):,} jobs could not be retried")


def _print_result(app: App, result: RetryResult) -> None:
    if result.made is None:
        app.out.info(f"draftsman: {job_name(result.retry_of)}: {result.error}")
    elif not app.json:
        text = f" {result.made.outcome}: retry of {job_name(result.retry_of)}"
        app.out.print(line(styled(result.made.name, "bold"), text))


def _as_row(result: RetryResult) -> dict[str, Any]:
    retry = as_data(result.made) or {
        "number": None,
        "id": None,
        "status": None,
        "outcome": "failed",
    }
    return {"retry_of": result.retry_of, **retry, "error": result.error}


def _confirm(app: App, jobs: list[FinishedJob], yes: bool) -> None:
    """Ask for confirmation; raises Refused on no, UsageError without a terminal."""
    if yes:
        return
    counts = Counter(job.status for job in jobs)
    kinds = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in counts.items())
    summary = f"{counted(len(jobs), 'job')} ({kinds})"
    if not app.out.interactive:
        raise UsageError(
            f"not a terminal; to retry {summary}, use --yes (or --dry-run to list them)"
        )
    prompts.confirm(f"Retry {summary}?")


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
