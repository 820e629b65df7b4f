"""`retry`: jobs that ended run anew, one by one or all that ended alike."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain.job import Status
from draftsman.domain.text import first_line
from draftsman.errors import DraftsmanError, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params, times
from draftsman_tui.common.job_text import status_text
from draftsman_tui.common.output import as_data, line, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.domain.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman.services.jobs.bulk_retry import FinishedJob, RetryResult

TOLD: Final = 2.0
"""Seconds between two lines of progress."""


@command(
    "retry",
    examples=(
        "draftsman retry D-142",
        "draftsman retry D-140 D-141 --fresh",
        "draftsman retry D-142 --with-answer",
        "draftsman retry --status dead_letter --type llm_generate --since 2h --dry-run",
        "draftsman retry --status failed,dead_letter --repo acme/pay --yes",
    ),
)
@click.argument("jobs", metavar="[JOB...]", nargs=-1, type=params.JOB)
@click.option("--status", type=params.STATUS, multiple=True, help="All that ended so.")
@click.option("--type", type=params.TEXT, help="Of those, only this type.")
@click.option("--agent", type=params.TEXT, help="Of those, only of this agent.")
@click.option("--repo", type=params.TEXT, help="Of those, only this repository.")
@click.option("--since", type=params.DURATION, help="Of those, only what ended within: 2h, 1d.")
@click.option("--dry-run", is_flag=True, help="Change nothing, list what would be retried.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--fresh", is_flag=True, help="From the start: without the last checkpoint.")
@click.option("--again", is_flag=True, help="Also where it completed.")
@click.option("--with-answer", is_flag=True, help="With the answer that came too late for it.")
async def retry(
    app: App,
    jobs: tuple[JobRef, ...],
    status: tuple[tuple[Status, ...], ...],
    since: float | None,
    dry_run: bool,
    yes: bool,
    with_answer: bool,
    fresh: bool,
    again: bool,
    **filters: str | None,
) -> None:
    """Run finished jobs anew.

    Each becomes a new job that carries on from the last checkpoint and asks its questions again. A
    second retry of the same job finds the first one's.

    With --status it takes all that ended so and have not been retried, asks first, and tells what
    became of each. It may be interrupted and done again. Exits with 1 if one could not be retried.
    """
    wanted = [one for several in status for one in several]
    narrowed = [f"--{name}" for name, value in filters.items() if value]
    narrowed += [name for name, value in (("--since", since), ("--dry-run", dry_run)) if value]
    if not wanted and narrowed:
        raise UsageError(f"{narrowed[0]} goes with --status: draftsman retry --status dead_letter")
    if bool(jobs) == bool(wanted):
        raise UsageError("give jobs, or --status for all that ended so: --status dead_letter")
    if wanted and with_answer:
        raise UsageError("--with-answer takes jobs, not --status")
    async with app.runtime(read_only=dry_run) as rt:
        if jobs:
            options = {"fresh": fresh, "again": again, "with_answer": with_answer}
            await _retry_each(app, rt, jobs, options)
            return
        found = await rt.bulk_retry.matching(wanted, since=since, **filters)
        new = [job for job in found if job.followed_by is None]
        if before := len(found) - len(new):
            app.out.info(f"{before:,} of them {'was' if before == 1 else 'were'} retried before")
        if dry_run:
            _list(app, new)
        elif new:
            _confirm(app, new, yes)
            await _retry_all(app, rt, [job.number for job in new], fresh=fresh, again=again)
        elif app.json:
            app.out.document([])
        else:
            app.out.info("nothing to retry; see: draftsman jobs --status dead_letter")


async def _retry_each(
    app: App, rt: Runtime, jobs: tuple[JobRef, ...], options: dict[str, bool]
) -> None:
    made: list[dict[str, Any]] = []
    errors: list[DraftsmanError] = []
    actor = await rt.actor()
    for job in jobs:
        try:
            made.append(await _retry(app, rt, job, actor, options))
        except DraftsmanError as error:
            if error.exit_code == 6:
                raise
            errors.append(error)
    if app.json:
        app.out.document(made)
    for earlier in errors[:-1]:
        app.out.info(f"draftsman: {earlier}")
    if errors:
        raise errors[-1]


async def _retry(
    app: App, rt: Runtime, job: JobRef, actor: Actor, options: dict[str, bool]
) -> dict[str, Any]:
    number = await number_of(rt, job)
    new = await rt.job_control.retry(number, actor, **options)
    if not app.json:
        app.out.print(line(styled(new.name, "bold"), f" {new.how}: D-{number} anew"))
    return {"retry_of": number, **as_data(new)}


async def _retry_all(app: App, rt: Runtime, numbers: list[int], **options: bool) -> None:
    """Retry them, telling each and now and then how far it is; raises if one was refused."""
    done: list[RetryResult] = []
    told = time.monotonic()
    try:
        async for one in rt.bulk_retry.retry(numbers, await rt.actor(), **options):
            done.append(one)
            _tell(app, one)
            if time.monotonic() - told > TOLD:
                told = time.monotonic()
                app.out.info(f"{len(done):,} of {len(numbers):,}")
    finally:  # what was made before an interruption is told too
        if app.json:
            app.out.document([_as_row(one) for one in done])
        if (left := len(numbers) - len(done)) > 0:
            app.out.info(
                f"stopped, with {left:,} of {len(numbers):,} left; again takes up the rest"
            )
    if refused := sum(one.made is None for one in done):
        raise DraftsmanError(f"{refused:,} of {len(done):,} could not be retried")


def _tell(app: App, one: RetryResult) -> None:
    if one.made is None:
        app.out.info(f"draftsman: D-{one.retry_of}: {one.error}")
    elif not app.json:
        text = f" {one.made.how}: D-{one.retry_of} anew"
        app.out.print(line(styled(one.made.name, "bold"), text))


def _as_row(one: RetryResult) -> dict[str, Any]:
    made = as_data(one.made) or {"number": None, "id": None, "status": None, "how": "refused"}
    return {"retry_of": one.retry_of, **made, "error": one.error}


def _confirm(app: App, jobs: list[FinishedJob], yes: bool) -> None:
    """Ask whether it is these; raises Refused if not, UsageError where nobody can be asked."""
    if yes:
        return
    counts = Counter(job.status for job in jobs)
    kinds = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in counts.items())
    what = f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'} ({kinds})"
    if not app.out.interactive:
        raise UsageError(f"nobody is here to be asked; retry {what} with --yes, see --dry-run")
    prompts.confirm(f"retry {what}?")


def _list(app: App, jobs: list[FinishedJob]) -> None:
    if app.json:
        app.out.document(jobs)
    elif jobs:
        rows = [
            (
                styled(f"D-{job.number}", "bold"),
                status_text(job.status),
                first_line(job.ticket_title or job.type, 30),
                times.ago(job.finished_at),
                first_line(job.last_error or ""),
            )
            for job in jobs
        ]
        app.out.table(("JOB", "STATUS", "TITLE", "ENDED", "WHY"), rows, flexible=4)
    if not app.json:
        app.out.info(f"{len(jobs):,} would be retried")
