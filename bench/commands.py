"""Commands that a person types, from start to end of the process, beside `python -c pass`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, PIPE

from bench.measure import WARM_SAMPLES, Run
from bench.report import Figures
from bench.server import BenchError

DRAFTSMAN = (sys.executable, "-m", "draftsman_tui")
COMMANDS = {
    "python": (sys.executable, "-c", "pass"),
    "help": (*DRAFTSMAN, "--help"),
    "jobs": (*DRAFTSMAN, "jobs"),
}
"""Each in alternation with the others, so that all meet the same machine."""


async def commands(run: Run) -> Figures:
    """Run each command alone, as many times as the measure has jobs; return medians and ratios."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "draftsman.toml")
        config.touch()
        environment = {
            **os.environ,
            "DRAFTSMAN_DATABASE_URL": run.url,
            "DRAFTSMAN_CONFIG": str(config),
            "DRAFTSMAN_DATA_DIR": folder,
        }
        for count in range(WARM_SAMPLES + run.jobs):
            for name, command in COMMANDS.items():
                seconds = await _seconds(command, environment)
                if count >= WARM_SAMPLES:
                    times[name].append(seconds)
    medians = {name: median(seconds) for name, seconds in times.items()}
    figures = {f"{name}_ms": seconds * 1e3 for name, seconds in medians.items()}
    return figures | {
        f"{name}_ratio": medians[name] / medians["python"] for name in ("help", "jobs")
    }


async def _seconds(command: tuple[str, ...], environment: dict[str, str]) -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    _, errors = await process.communicate()
    seconds = time.monotonic() - began
    if process.returncode:
        raise BenchError(f"{' '.join(command)} failed: {errors.decode().strip()[-200:]}")
    return seconds
