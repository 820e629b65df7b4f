"""The `soak` command: a soak test with injected faults."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.processes.shutdown import shutdown_signals
from draftsman_tui.cli.app import App, command
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.output import CommandOutput, line, styled

if TYPE_CHECKING:
    from draftsman_soak.figures import Figures
    from draftsman_soak.seed_run import SeedRun

PROGRESS_INTERVAL: Final = 30.0
"""Seconds between progress messages if stderr is not a terminal."""
MUST_BE_NONE: Final = {
    "effects_duplicated": "duplicate effects",
    "answers_lost": "lost answers",
    "jobs_lost": "lost jobs",
    "jobs_stuck": "stuck jobs",
    "jobs_run_concurrently": "jobs with concurrent runs",
    "jobs_stalled": "stalls of all jobs",
    "jobs_wrong_outcome": "jobs with a wrong outcome",
    "invariants_broken": "broken invariants",
}
"""Titles of the figures that fail the soak test."""


@command(
    "soak",
    section="Processes",
    examples=(
        "draftsman soak                             five minutes, seed 1",
        "draftsman soak --minutes 30 --seeds 6      five minutes each",
        "draftsman soak --seed 4711 --keep          repeat a seed and keep its folder",
    ),
    long_running=True,
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.02, 10_080),
    default=5.0,
    show_default=True,
    help="Total time under load and faults, divided among the seeds.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="First seed.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Number of worker processes; `draftsman up` runs the first.",
)
@click.option("--keep", is_flag=True, help="Keep the folder with database and logs.")
async def soak(app: App, minutes: float, seeds: int, seed: int, workers: int, keep: bool) -> None:
    """Run a soak test: inject faults under load and check the jobs.

    Uses its own PostgreSQL server, configuration and folder, with worker processes started by
    `draftsman up`. Workers, agents, the supervisor and the database are killed, paused,
    disconnected and given wrong clocks at random (determined by the seed), while simulated people
    answer, cancel and retry, often concurrently.

    Recovery is the time from a fault that hit a running job until the job makes progress or ends.

    Exits with 1 on any violation: a duplicate effect, a lost answer or job, a stuck job, a wrong
    outcome, concurrent runs of a job, or a broken invariant. The folder of a failed seed is kept.
    """
    from draftsman_soak.seed_environment import temporary_folder, without_user_config

    plan = range(seed, seed + seeds)
    seconds = minutes * 60 / seeds
    async with shutdown_signals():
        with temporary_folder() as folder, without_user_config():
            figures = await _run_seeds(app, folder, plan, seconds, workers, keep=keep)
        print_figures(app.out, figures)
        return
    raise click.Abort


async def _run_seeds(
    app: App, base: Path, seeds: range, seconds: float, workers: int, *, keep: bool
) -> Figures:
    from draftsman_soak.figures import Figures
    from draftsman_soak.final_state import find_violations
    from draftsman_soak.seed_run import SeedRun

    figures = Figures()
    for seed in seeds:
        seed_run = SeedRun(seed, base / f"seed-{seed}", workers)
        for feature in sorted(seed_run.ledger.unsupported):
            app.out.info(f"draftsman: not supported here: {feature}")
        keep_files = keep
        try:
            final_state = await _run_with_progress(app.out, seed, seed_run, seconds)
            violations = find_violations(final_state, seed_run.ledger)
            figures.add(seed, final_state, seed_run.ledger, violations)
            if violations.findings:
                figures.failed[seed] = str(seed_run.place.folder)
                keep_files = True
        except Exception:
            keep_files = True
            raise
        finally:
            await asyncio.to_thread(seed_run.place.close)
            if keep_files:
                app.out.info(f"seed {seed}: files kept in {seed_run.place.folder}")
            else:
                await asyncio.to_thread(seed_run.place.remove)
    return figures


async def _run_with_progress(
    out: CommandOutput, seed: int, seed_run: SeedRun, seconds: float
) -> Any:
    """Run the seed and print its progress, on a single line of a terminal."""
    running = asyncio.create_task(seed_run.run(seconds))
    screen = stdio.is_terminal(sys.stderr)
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=1.0 if screen else PROGRESS_INTERVAL)
            if screen:
                stdio.write_stderr(f"\r{_progress(seed, seed_run, seconds)}\x1b[K")
            elif not running.done():
                out.info(_progress(seed, seed_run, seconds))
        return await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if screen:
            stdio.write_stderr("\r\x1b[K")


def _progress(seed: int, seed_run: SeedRun, seconds: float) -> str:
    ledger = seed_run.ledger
    elapsed = time.monotonic() - seed_run.began
    loading = seed_run.stage == "loaded"
    stage = f"{_clock(elapsed)} of {_clock(seconds)}" if loading else seed_run.stage
    answers = len(ledger.submitted_answers)
    faults = len(ledger.faults)
    counts = f"{len(ledger.jobs)} jobs, {answers} answers, {faults} faults"
    return f"seed {seed}: {stage}, {counts}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def print_figures(out: CommandOutput, figures: Figures) -> None:
    """Print the figures; raises Exit with 1 on a violation."""
    if out.json:
        names = [field.name for field in dataclasses.fields(figures)]
        values = {name: getattr(figures, name) for name in names if not name.startswith("_")}
        out.document({"passed": figures.passed, **values})
    else:
        out.print(*_lines(figures))
        for finding in figures.findings:
            out.print(styled(finding, "red"))
    if not figures.recovered:
        out.info(
            "draftsman: no fault hit a running job; for a meaningful result, use more --minutes"
        )
    if not figures.passed:
        for seed, folder in figures.failed.items():
            out.info(f"draftsman: seed {seed} failed; its database and logs: {folder}")
        raise click.exceptions.Exit(1)


def _lines(figures: Figures) -> Iterator[Any]:
    unsupported = figures.unsupported_faults
    yield _row("jobs", figures.jobs, _parts(figures.finished))
    yield _row("runs", figures.runs)
    yield _row("answers", figures.answers_given, f"{figures.answers_accepted:,} accepted")
    yield _row("kills", figures.kills)
    yield _row("faults", sum(figures.faults.values()), _parts(figures.faults))
    yield _row("missed faults", sum(figures.faults_missed.values()), _parts(figures.faults_missed))
    yield _row("restarts", figures.restarts)
    exits = figures.unexpected_exits
    yield _row("unexpected exits", sum(exits.values()), _parts(exits, "exit code "))
    rejected = f"{figures.effects_rejected:,} requested twice and rejected by the external system"
    yield _row("effects", figures.effects, rejected)
    for name, title in MUST_BE_NONE.items():
        count = getattr(figures, name)
        yield _row(title, count, style="bold red" if count else "green")
    yield _row("recovery", figures.recovered, _times(figures.recovery_p50, figures.recovery_p95))
    for kind, durations in figures.recovery.items():
        yield _row(
            f"  {kind}",
            int(durations["recovered"] or 0),
            _times(durations["p50"], durations["p95"]),
        )
    yield _row("not supported", len(unsupported), "; ".join(unsupported))


def _row(title: str, count: int, detail: str = "", style: str = "") -> Any:
    return line(f"{title:<28}", styled(f"{count:>8,}", style), f"  {detail}" if detail else "")


def _parts(counts: Any, prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name} {count:,}" for name, count in counts.most_common())


def _times(p50: float | None, p95: float | None) -> str:
    texts = ("-" if value is None else f"{value:.1f} s" for value in (p50, p95))
    return "p50 {}, p95 {}".format(*texts)
