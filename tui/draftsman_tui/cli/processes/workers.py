"""The `workers`, `sweep` and `stats` commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from draftsman.actions import maintenance as actions
from draftsman.entities.figures import FIGURES, FigureRow, summary_text
from draftsman.entities.throughput import FAILED_TOO, THROUGHPUT
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.amounts import count_text, counted
from draftsman.formats.json_data import as_data
from draftsman.jobs.details.throughput import Period, Throughput, ThroughputGroup
from draftsman.jobs.job import Status
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.lists import print_list, print_table
from draftsman_tui.cli.perform import act
from draftsman_tui.common.jobs import status_text
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line

if TYPE_CHECKING:
    from draftsman.events.service import RetentionMonth


MONTH: Final = 30 * 86_400.0
"""Seconds of the figures of people without --since."""
SWEEPS: Final = Path(__file__).with_name("sweeps.tsv")
"""Name and description of each sweep, which `python -m tests.docs.sweeps` writes."""


class SweepCommand(click.Command):
    """A command whose help lists the sweeps."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sweeps before the examples."""
        rows = (row.split("\t") for row in SWEEPS.read_text(encoding="utf-8").splitlines())
        with formatter.section("Sweeps"):
            formatter.write_dl([(name, description) for name, description in rows])
        super().format_epilog(ctx, formatter)


@command(
    "sweep",
    section="Processes",
    cls=SweepCommand,
    examples=("draftsman sweep expire", "draftsman sweep prune --dry-run"),
    does=(actions.sweep,),
)
@click.argument("name", type=params.TEXT)
@click.option("--dry-run", is_flag=True, help="With prune: list the months without changing them.")
async def sweep(app: App, name: str, dry_run: bool) -> None:
    """Run a maintenance sweep now."""
    if dry_run and name != "prune":
        raise UsageError(f"--dry-run requires the sweep prune, not {name!r}")
    async with app.runtime(read_only=dry_run) as rt:
        if not dry_run:
            await act(app, rt, actions.sweep, name)
        months = await rt.archives.plan() if name == "prune" else []
    if dry_run:
        _print_plan(app, months)
        return
    for month in () if app.json else months:
        app.out.info(f"{month.month:%Y-%m}: {month.state}")


def _print_plan(app: App, months: Sequence[RetentionMonth]) -> None:
    """Print the months that are past the retention."""
    if app.json:
        app.out.document([as_data(month) | {"state": month.state} for month in months])
    elif app.settings.retention.events is None:
        app.out.info("events are kept forever: retention.events is not set")
    elif not months:
        app.out.info("no events are older than retention.events")
    else:
        rows = [(f"{month.month:%Y-%m}", f"{month.events:,}", month.state) for month in months]
        app.out.table(("MONTH", "EVENTS", "STATE"), rows, flexible=2, right=(1,))


@command(
    "stats",
    section="Queues and costs",
    examples=(
        "draftsman stats",
        "draftsman stats --last week",
        "draftsman stats --json | jq .jobs.queued",
        "draftsman stats --people --since 7d",
    ),
    lists=FIGURES,
)
@click.option(
    "--last",
    type=click.Choice([period.value for period in Period]),
    help="The period of the figures by queue, type and repository; default day.",
)
@click.option("--people", is_flag=True, help="Show how soon people see and answer questions.")
@params.period_options("", "With --people: questions that were asked since then; default 30d.")
async def stats(
    app: App, last: str | None, people: bool, since: float | None, until: float | None
) -> None:
    """Show counts of jobs and workers, throughput and waits.

    Covers jobs by status, open failures, open questions, worker slots, answers in the last 24
    hours, and targets of deliveries that no running process sends to. Each count ends at 10,000:
    more are shown as 10,000+. Identical questions of several jobs count once.

    Below are the jobs that ended in the last hour, day and week, and those of a period by queue,
    type and repository, each with the most jobs first: how many failed, how long half and 95 % of
    them waited for a worker before their last run (WAITED) and ran (RAN), and when they ended
    (TREND). At most the newest 100,000 events of a period count; a dot is a time before these.

    With --people, shows the columns below by person, channel and kind of question; pings of a
    person were sent to this person alone. At most the newest 20,000 questions count. Operators see
    all people, others their own figures.
    """
    if people:
        if last is not None:
            raise UsageError("--last cannot be combined with --people; use --since")
        params.check_period(since, until)
        await _print_figures(app, MONTH if since is None else since, until or 0)
        return
    if since is not None or until is not None:
        raise UsageError("--since and --until require --people")
    _refuse_list_options(app)
    async with app.runtime(read_only=True) as rt:
        viewer = rt.policy.answers_only_own(await rt.actor())
        statistics = await rt.read_model.stats(viewer)
        unserved = await rt.outbox.unserved()
        throughput = [row for period in Period for row in await rt.throughput.read(period)]
    if app.json:
        more = {"unserved_deliveries": as_data(unserved)}
        more["throughput"] = [THROUGHPUT.data(row) for row in throughput]
        app.out.document(as_data(statistics) | more)
        return
    jobs = [(status, count) for status, count in statistics.jobs.items() if count]
    for status, count in jobs:
        app.out.print(line(f"{_aligned(count)} ", status_text(Status(status))))
    if not jobs:
        app.out.print("        0  jobs")
    soon = statistics.expiring_within_an_hour
    expiring_soon = f", {soon} within an hour" if soon else ""
    next_expiry = ""
    if statistics.next_expiry:
        next_expiry = f"; the next expires {times.until(statistics.next_expiry)}"
    median = (
        f", median {times.span(statistics.answer_seconds)}" if statistics.answer_seconds else ""
    )
    pauses = statistics.pauses
    app.out.print(
        f"{_counted(statistics.open_questions, 'open question')}{next_expiry}{expiring_soon}",
        f"{_counted(statistics.workers, 'worker')},"
        f" {statistics.busy} of {statistics.slots} slots busy",
        f"{_counted(statistics.answers_last_day, 'answer')} in the last 24 hours{median}",
    )
    if failures := sum(statistics.open_failures.values()):
        app.out.print(f"{_counted(failures, 'open failure')}: draftsman jobs --failures")
    if pauses:
        paused = _counted(pauses, "paused queue or type", "paused queues or types")
        app.out.print(f"{paused}: draftsman queues")
    _print_throughput(app, throughput, Period(last or Period.DAY))
    for item in unserved:
        app.out.info(item.text)


def _print_throughput(app: App, throughput: Sequence[Throughput], period: Period) -> None:
    """Print the rows of all jobs in each period, and those of groups in one of them."""
    if not any(row.finished for row in throughput):
        return
    rows = [row for row in throughput if row.by is ThroughputGroup.ALL]
    rows += [row for row in throughput if row not in rows and row.period is period]
    app.out.print("", f"Jobs that ended; {FAILED_TOO}:")
    print_table(app, THROUGHPUT, rows, datetime.now(UTC))


def _refuse_list_options(app: App) -> None:
    for option, is_given in (("count", app.counts), ("where", app.where), ("sort", app.sort)):
        if is_given:
            raise UsageError(f"--{option} requires --people; stats without it is no list")


def _counted(count: int, noun: str, plural: str | None = None) -> str:
    noun = counted(count, noun, plural).partition(" ")[2]
    return f"{_aligned(count)} {noun}"


def _aligned(count: int) -> str:
    """Return a count with its digits below those of the others."""
    text = count_text(count)
    return f"{text if text.endswith('+') else f'{text} ':>10}"


async def _print_figures(app: App, since: float, until: float) -> None:
    """Print the figures of people's time."""
    async with app.runtime(read_only=True) as rt:
        figures = await rt.figures.read(since, until)
    total = figures[0]
    rows = [FigureRow(row, datetime.now(UTC)) for row in figures]
    is_empty = not (total.questions or total.answers or total.pings)
    print_list(app, FIGURES, [] if is_empty and not app.json else rows)
    if not (is_empty or app.json):
        app.out.info(summary_text(total))
