"""Commands that a person types, from start to end of the process, beside `python -c pass`."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

from bench.answer import asked
from bench.measure import WARM_SAMPLES, Run
from bench.report import Figures
from bench.server import BenchError
from draftsman_tui.cli import command_index

DRAFTSMAN = (sys.executable, "-m", "draftsman_tui")
HELP = (*DRAFTSMAN, "--help")
COMMANDS = {
    "python": (sys.executable, "-c", "pass"),
    "help": HELP,
    "jobs": (*DRAFTSMAN, "jobs"),
    "submit": (*DRAFTSMAN, "submit", "--unchecked", "--type", "noop"),
    "show": (*DRAFTSMAN, "show", "D-{job}"),
    "answer": (*DRAFTSMAN, "answer", "--only", "D-{job}/1", "red"),
}
"""Each in alternation with the others, so that all meet the same machine."""
ROLES = (
    *(*DRAFTSMAN, "people", "set", "bench", "--yes"),
    *("--role", "invoker", "--role", "responder", "--login"),
)
"""Before the login of the person who types the commands."""
TO_JOBS = ("submit", "show", "answer")
"""Commands whose CPU is compared with that of `jobs`."""


class Usage(NamedTuple):
    """Seconds of a process, from its start to its end, and its CPU seconds."""

    seconds: float
    cpu: float


async def commands(run: Run) -> Figures:
    """Run each command alone, as many times as the measure has jobs; return medians and ratios."""
    async with asked(run) as (rt, _, numbers):
        login = (await rt.actor()).id
    usages: dict[str, list[Usage]] = {name: [] for name in COMMANDS}
    async with _environment(run) as environment:
        await _usage((*ROLES, login), environment)
        for count, number in enumerate(numbers):
            for name, command in COMMANDS.items():
                line = tuple(part.format(job=number) for part in command)
                used = await _usage(line, environment)
                if count >= WARM_SAMPLES:
                    usages[name].append(used)
    times = {name: median(used.seconds for used in usages[name]) for name in COMMANDS}
    cpu = {name: median(used.cpu for used in usages[name]) for name in COMMANDS}
    return {
        **{f"{name}_ms": times[name] * 1e3 for name in ("python", "help", "jobs")},
        **{f"{name}_ratio": times[name] / times["python"] for name in ("help", "jobs")},
        **{f"{name}_cpu_ratio": cpu[name] / cpu["jobs"] for name in TO_JOBS},
    }


async def helps(run: Run) -> Figures:
    """Show the help of every command of the index, as many times as the measure has jobs.

    Return the CPU of each, divided by that of `draftsman --help`, the largest ratio first.
    """
    lines = {name: (*DRAFTSMAN, name, "--help") for name in command_index.read()}
    used: dict[str, list[float]] = {name: [] for name in ("", *lines)}
    async with _environment(run) as environment:
        for count in range(1 + run.jobs):
            for name, line in {"": HELP, **lines}.items():
                usage = await _usage(line, environment)
                if count:  # the first may compile the modules
                    used[name].append(usage.cpu)
    bare = median(used.pop(""))
    ratios = {name: median(seconds) / bare for name, seconds in used.items()}
    largest = sorted(ratios, key=ratios.__getitem__, reverse=True)
    return {
        "bare_cpu_ms": bare * 1e3,
        "commands": float(len(ratios)),
        "median_ratio": median(ratios.values()),
        "largest_ratio": ratios[largest[0]],
        **{name: ratios[name] for name in largest},
    }


@asynccontextmanager
async def _environment(run: Run) -> AsyncIterator[Mapping[str, str]]:
    """Yield the environment of a command that uses the database of a run, without a file."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "draftsman.toml")
        config.touch()
        yield {
            **os.environ,
            "DRAFTSMAN_DATABASE_URL": run.url,
            "DRAFTSMAN_CONFIG": str(config),
            "DRAFTSMAN_DATA_DIR": folder,
        }


async def _usage(command: tuple[str, ...], environment: Mapping[str, str]) -> Usage:
    """Run a command to its end, while no other process of the bench ends; raises BenchError."""
    before = _ended_cpu()
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    _, errors = await process.communicate()
    seconds = time.monotonic() - began
    if process.returncode:
        raise BenchError(f"{' '.join(command)} failed: {errors.decode().strip()[-200:]}")
    return Usage(seconds, _ended_cpu() - before)


def _ended_cpu() -> float:
    """Return the CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
