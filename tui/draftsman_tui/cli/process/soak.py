"""`draftsman soak`: see on this machine that draftsman keeps its promises."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman_tui.cli.app import App, command
from draftsman_tui.common import stdio
from draftsman_tui.common.output import CommandOutput, line, styled

if TYPE_CHECKING:
    from draftsman_soak.figures import Figures
    from draftsman_soak.seed_run import SeedRun

TELL: Final = 30.0
"""Seconds between two lines of progress where stderr is no terminal."""
MUST_BE_NONE: Final = {
    "effects_doubled": "effects doubled",
    "answers_lost": "answers lost",
    "jobs_lost": "jobs lost",
    "jobs_stuck": "jobs stuck",
    "jobs_run_twice_at_once": "jobs run by two at once",
    "jobs_ended_wrongly": "jobs ended wrongly",
    "invariants_broken": "invariants broken",
}
"""The figures that fail the soak, and what they are called."""


@command(
    "soak",
    examples=(
        "draftsman soak                             five minutes, seed 1",
        "draftsman soak --minutes 30 --seeds 6      five minutes each",
        "draftsman soak --seed 4711 --keep          one seed again, its folder kept",
    ),
    long_running=True,
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.02, 10_080),
    default=5.0,
    show_default=True,
    help="Time under load and faults, of all seeds together.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option(
    "--workers",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Worker processes; the first is run by `draftsman up`.",
)
@click.option("--keep", is_flag=True, help="Keep the folder, database and logs, in any case.")
async def soak(app: App, minutes: float, seeds: int, seed: int, workers: int, keep: bool) -> None:
    """Load draftsman, break everything around it, and count what it lost.

    It works on a PostgreSQL, a configuration and a folder of its own, never on yours, with the
    worker processes that `draftsman up` starts. They, their agents, the supervisor and the database
    are killed, stopped, cut off and put on wrong clocks, at random by the seed, while people
    answer, cancel and retry, often two at once.

    Recovery is the time from a fault that hit a running job until a run of it starts, writes or
    parks again, or it ended.

    Exit code 1 says that a promise was broken: an effect was doubled, an answer or a job was lost,
    a job is stuck or ended wrongly, two ran one at once, or an invariant does not hold. The seed
    and its folder are kept then.
    """
    from draftsman.shutdown import shutdown_signals
    from draftsman_soak.seed_environment import temporary_folder, without_user_config

    plan, seconds = range(seed, seed + seeds), minutes * 60 / seeds
    async with shutdown_signals():
        with temporary_folder() as folder, without_user_config():
            figures = await _all(app, folder, plan, seconds, workers, keep=keep)
        print_figures(app.out, figures)
        return
    raise click.Abort


async def _all(
    app: App, base: Path, seeds: range, seconds: float, workers: int, *, keep: bool
) -> Figures:
    from draftsman_soak.figures import Figures
    from draftsman_soak.seed_run import SeedRun
    from draftsman_soak.violations import find_violations

    figures = Figures()
    for seed in seeds:
        trial = SeedRun(seed, base / f"seed-{seed}", workers)
        for lack in sorted(trial.ledger.unsupported):
            app.out.info(f"draftsman: could not run: {lack}")
        kept = keep
        try:
            world = await _watched(app.out, seed, trial, seconds)
            verdict = find_violations(world, trial.ledger)
            figures.add(seed, world, trial.ledger, verdict)
            if verdict.findings:
                figures.failed[seed], kept = str(trial.place.folder), True
        except Exception:
            kept = True
            raise
        finally:
            await asyncio.to_thread(trial.place.close)
            if kept:
                app.out.info(f"seed {seed}: kept in {trial.place.folder}")
            else:
                await asyncio.to_thread(trial.place.remove)
    return figures


async def _watched(out: CommandOutput, seed: int, trial: SeedRun, seconds: float) -> Any:
    """Run the trial; say what goes on, in one line of a terminal that changes."""
    running = asyncio.create_task(trial.run(seconds))
    screen = stdio.is_terminal(sys.stderr)
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=1.0 if screen else TELL)
            if screen:
                stdio.write_stderr(f"\r{_progress(seed, trial, seconds)}\x1b[K")
            elif not running.done():
                out.info(_progress(seed, trial, seconds))
        return await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if screen:
            stdio.write_stderr("\r\x1b[K")


def _progress(seed: int, trial: SeedRun, seconds: float) -> str:
    ledger, passed = trial.ledger, time.monotonic() - trial.began
    of = f"{_clock(passed)} of {_clock(seconds)}" if trial.stage == "loaded" else trial.stage
    answers, faults = len(ledger.submitted_answers), len(ledger.faults)
    counts = f"{len(ledger.jobs)} jobs, {answers} answers, {faults} faults"
    return f"seed {seed}: {of}, {counts}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def print_figures(out: CommandOutput, figures: Figures) -> None:
    """Print the figures; raises Exit with 1 where a promise was broken."""
    if out.json:
        names = [field.name for field in dataclasses.fields(figures)]
        shown = {name: getattr(figures, name) for name in names if not name.startswith("_")}
        out.document({"passed": figures.passed, **shown})
    else:
        out.print(*_lines(figures))
        for finding in figures.findings:
            out.print(styled(finding, "red"))
    if not figures.recovered:
        out.info("draftsman: no fault hit a running job, so this says little; give it more minutes")
    if not figures.passed:
        for seed, folder in figures.failed.items():
            out.info(f"draftsman: seed {seed} broke a promise; its database and logs: {folder}")
        raise click.exceptions.Exit(1)


def _lines(figures: Figures) -> Iterator[Any]:
    lacks = figures.could_not_run
    yield _row("jobs", figures.jobs, _parts(figures.ended))
    yield _row("runs", figures.runs)
    yield _row("answers", figures.answers_given, f"{figures.answers_accepted:,} accepted")
    yield _row("kills", figures.kills)
    yield _row("faults", sum(figures.faults.values()), _parts(figures.faults))
    yield _row("faults missed", sum(figures.faults_missed.values()), _parts(figures.faults_missed))
    yield _row("restarts", figures.restarts)
    own = figures.ended_by_themselves
    yield _row("ended by themselves", sum(own.values()), _parts(own, "exit code "))
    refused = f"{figures.effects_refused:,} asked for twice and refused outside"
    yield _row("effects", figures.effects, refused)
    for name, title in MUST_BE_NONE.items():
        count = getattr(figures, name)
        yield _row(title, count, style="bold red" if count else "green")
    yield _row("recovery", figures.recovered, _times(figures.recovery_p50, figures.recovery_p95))
    for kind, found in figures.recovery.items():
        yield _row(f"  {kind}", int(found["recovered"] or 0), _times(found["p50"], found["p95"]))
    yield _row("could not run", len(lacks), "; ".join(lacks))


def _row(title: str, count: int, about: str = "", style: str = "") -> Any:
    return line(f"{title:<28}", styled(f"{count:>8,}", style), f"  {about}" if about else "")


def _parts(counts: Any, before: str = "") -> str:
    return ", ".join(f"{before}{name} {count:,}" for name, count in counts.most_common())


def _times(p50: float | None, p95: float | None) -> str:
    told = ("-" if value is None else f"{value:.1f} s" for value in (p50, p95))
    return "p50 {}, p95 {}".format(*told)
