"""The `logs` command: output and activity of the runs of a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from draftsman.agent_runs.activity.log_entries import LogEntry, LogReader, last_lines
from draftsman.errors import NotFound, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import JobRef, job_name, run_text
from draftsman.jobs.details.service.log_feed import LogCursor
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.jobs.job_wait import print_waits
from draftsman_tui.cli.jobs.log_printer import JsonLogPrinter, LogPrinter, LogProgress
from draftsman_tui.common.events import no_log
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

Entries = Callable[..., AsyncIterator[tuple[LogEntry, LogCursor]]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The entries of a log to print: those of a run, the last lines, those from a time on."""

    follow: bool
    only: int | None
    tail: int | None
    first: datetime | None

    def __contains__(self, entry: LogEntry) -> bool:
        is_new = self.first is None or entry.created_at >= self.first
        return is_new and self.only in (None, entry.run)

    async def print(self, entries: Entries, printer: LogPrinter | JsonLogPrinter) -> bool:
        """Print these entries; return whether there are any, also with a tail of 0 lines."""
        after = LogCursor() if self.only is None else LogCursor.before_run(self.only)
        has_any = False
        if self.tail is not None:
            stored = [item async for item in entries(follow=False, after=after)]
            after = stored[-1][1] if stored else after
            kept = [entry for entry, _ in stored if entry in self]
            has_any = bool(kept)
            for entry in last_lines(kept, self.tail):
                printer.print(entry)
            if not self.follow:
                return has_any
        async for entry, _ in entries(follow=self.follow, after=after):
            if self.only is not None and entry.run > self.only:
                break
            if entry in self:
                has_any = True
                printer.print(entry)
        return has_any


@command(
    "logs",
    section="Jobs",
    examples=(
        "draftsman logs D-142",
        "draftsman logs -f D-142",
        "draftsman logs --tail 20 D-142 D-143",
        "draftsman logs --activity D-142",
        "draftsman logs --full D-142",
        "draftsman logs -t D-142",
        "draftsman logs --run 2 D-142",
        "draftsman logs --tail 20 -f D-142",
        "draftsman logs --since 10m D-142",
        "draftsman logs -f --json D-142",
    ),
)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, type=params.JOB_OF)
@click.option("-f", "--follow", is_flag=True, help="Stream until the job ends, over all its runs.")
@click.option("--activity", is_flag=True, help="Only the activity of the agent.")
@click.option("--output", is_flag=True, help="Only the output of programs.")
@click.option("--run", "only", type=params.COUNT, metavar="N", help="Only run N of the job.")
@click.option(
    "--tail",
    type=params.LINES,
    metavar="N",
    help="Only the last N lines; with -f, also those that follow.",
)
@click.option("--since", type=params.SINCE, help="Only what is newer: 10m, 9:00, yesterday 9:00.")
@click.option("-t", "--timestamps", is_flag=True, help="Start each line with its local time.")
@click.option("--full", is_flag=True, help="Fold no long texts, as on a terminal.")
async def logs(
    app: App,
    jobs: tuple[JobRef, ...],
    follow: bool,
    activity: bool,
    output: bool,
    only: int | None,
    tail: int | None,
    since: float | None,
    timestamps: bool,
    full: bool,
) -> None:
    """Print the output of jobs and the activity of their agents.

    Activity has the messages, calls of tools, files and plan of the agent, and its tokens at the
    end of a run. A call is one line, with its time once it has ended. On a terminal Markdown is
    rendered, and what an agent makes long is folded: thoughts, titles of calls, and without -f
    also output; in pipes texts are unchanged.

    The log of a job with several runs has a line before each, such as -- run 2 of D-142 --; so has
    every log on a terminal, and those of several jobs, which are printed one after another. A run
    that failed, was canceled or lost ends with a line that says so, and why. With --json, that is
    an entry of kind end, and each line of several jobs has the number of its job.

    With -f, stderr says why the job waits: at first, and whenever it waits for a person.

    The newest rows are kept; the artifact transcript.jsonl of a run has all of them.
    """
    if activity and output:
        raise UsageError("--activity and --output cannot be combined")
    if only is not None and follow:
        raise UsageError("--run cannot be combined with --follow")
    if follow and len(jobs) > 1:
        raise UsageError("--follow takes a single job")
    first, _ = params.period(since, None)
    log = partial(
        _print_log,
        app,
        wanted=_Wanted(follow, only, tail, first),
        activity=activity,
        output=output,
        timestamps=timestamps,
        full=full,
        is_headed=len(jobs) > 1,
    )
    async with app.runtime(read_only=True) as rt:
        numbers = [await number_of(rt, job) for job in jobs]
        with app.out.paged(unless=follow):
            has_any = [await log(rt, number) for number in numbers]
        for number, is_any in zip(numbers, has_any, strict=True):
            if not is_any and not app.json:
                app.out.info(_nothing(rt, number, activity=activity, first=first))


async def _print_log(
    app: App,
    rt: Runtime,
    number: int,
    *,
    wanted: _Wanted,
    activity: bool,
    output: bool,
    timestamps: bool,
    full: bool,
    is_headed: bool,
) -> bool:
    """Print the log of a job, with the head of each run if `is_headed`; return whether it has any.

    Raises NotFound for a run that the job does not have.
    """
    runs = (await rt.read_model.job(number)).run_count
    if wanted.only is not None and wanted.only > runs:
        raise NotFound(
            f"{job_name(number)} has no {run_text(wanted.only)}; {counted(runs, 'run')} so far"
        )
    folds = not (full or output) and bool(await rt.activity.page(number, limit=1))
    text_printer = LogPrinter(
        app.out,
        number,
        headed_from=1 if is_headed or app.out.on_screen or runs > 1 else 2,
        timestamps=timestamps,
        folds=folds,
        live=wanted.follow,
    )
    printer = JsonLogPrinter(app.out, number if is_headed else None) if app.json else text_printer
    progress = LogProgress()

    def caught_up() -> None:
        progress.caught_up()
        text_printer.rest()

    entries = partial(
        rt.log_feed.entries,
        number,
        output=not activity,
        activity=not output,
        reader=LogReader(),
        on_complete=caught_up,
    )
    async with asyncio.TaskGroup() as group:
        if wanted.follow:
            group.create_task(print_waits(app, rt, number, text_printer, progress))
        has_any = await wanted.print(entries, printer)
        progress.end()
    printer.close()
    return has_any


def _nothing(rt: Runtime, number: int, *, activity: bool, first: datetime | None) -> str:
    """Return why nothing was printed."""
    name = job_name(number)
    if first is not None:
        return f"{name} has logged nothing since then; leave out --since"
    if activity:
        return f"{name} has no activity; see: draftsman logs --output"
    return f"{no_log(number, rt.settings.retention.logs)}; see: draftsman events {name}"
