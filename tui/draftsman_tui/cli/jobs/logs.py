"""The `logs` command: output and activity of the runs of a job."""

from __future__ import annotations

from functools import partial

import click

from draftsman.agent_runs.activity.log_entries import LogReader, last_lines
from draftsman.errors import NotFound, UsageError
from draftsman.ids import JobRef, job_name
from draftsman.jobs.details.service.log_feed import LogCursor
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.jobs.log_printer import JsonLogPrinter, LogPrinter
from draftsman_tui.common.events import no_log
from draftsman_tui.terminal import params


@command(
    "logs",
    section="Jobs",
    examples=(
        "draftsman logs D-142",
        "draftsman logs -f D-142",
        "draftsman logs --activity D-142",
        "draftsman logs --full D-142",
        "draftsman logs -t D-142",
        "draftsman logs --run 2 D-142",
        "draftsman logs --tail 20 -f D-142",
        "draftsman logs -f --json D-142",
    ),
)
@click.argument("job", type=params.JOB_OF)
@click.option("-f", "--follow", is_flag=True, help="Stream until the job ends, over all its runs.")
@click.option("--activity", is_flag=True, help="Only the activity of the agent.")
@click.option("--output", is_flag=True, help="Only the output of programs.")
@click.option("--run", "only", type=params.COUNT, metavar="N", help="Only the run .N of the job.")
@click.option(
    "--tail",
    type=params.COUNT,
    metavar="N",
    help="Only the last N lines; with -f, also those that follow.",
)
@click.option("-t", "--timestamps", is_flag=True, help="Start each line with its local time.")
@click.option("--full", is_flag=True, help="Fold no long texts, as on a terminal.")
async def logs(
    app: App,
    job: JobRef,
    follow: bool,
    activity: bool,
    output: bool,
    only: int | None,
    tail: int | None,
    timestamps: bool,
    full: bool,
) -> None:
    """Print the output of a job's runs and the activity of its agent.

    Activity has the messages, calls of tools, files and plan of the agent, and its tokens at the
    end of a run. A call is one line, with its time once it has ended. On a terminal Markdown is
    rendered, and what an agent makes long is folded: thoughts, titles of calls, and without -f
    also output; in pipes texts are unchanged.

    The log of a job with several runs has a line before each, such as -- run 142.2 --; so has every
    log on a terminal.

    The newest rows are kept; the artifact transcript.jsonl of a run has all of them.
    """
    if activity and output:
        raise UsageError("--activity and --output cannot be combined")
    if only is not None and (follow or tail is not None):
        raise UsageError("--run cannot be combined with --follow or --tail")
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        runs = (await rt.read_model.job(number)).run_count
        if only is not None and only > runs:
            raise NotFound(f"{job_name(number)} has no run .{only}; its runs: {runs}")
        folds = not (full or output) and bool(await rt.activity.page(number, limit=1))
        text_printer = LogPrinter(
            app.out,
            number,
            headed_from=1 if app.out.on_screen or runs > 1 else 2,
            timestamps=timestamps,
            folds=folds,
            live=follow,
        )
        printer = JsonLogPrinter(app.out) if app.json else text_printer
        is_empty = True
        with app.out.paged(unless=follow):
            after = LogCursor() if only is None else LogCursor.before_run(only)
            entries = partial(
                rt.log_feed.entries,
                number,
                output=not activity,
                activity=not output,
                reader=LogReader(),
                on_complete=text_printer.rest,
            )
            if tail is not None:
                stored = [item async for item in entries(follow=False)]
                after = stored[-1][1] if stored else after
                for entry in last_lines([entry for entry, _ in stored], tail):
                    is_empty = False
                    printer.print(entry)
            if follow or tail is None:
                async for entry, _ in entries(follow=follow, after=after):
                    if only is not None and entry.run > only:
                        break
                    is_empty = False
                    printer.print(entry)
            printer.close()
        if not is_empty or app.json:
            return
        if activity:
            app.out.info(f"{job_name(number)} has no activity; see: draftsman logs --output")
        else:
            retention = rt.settings.retention.logs
            app.out.info(f"{no_log(number, retention)}; see: draftsman events {job_name(number)}")
