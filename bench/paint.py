"""Time from a key to the changed screen, and to the first paint, beside a bare Textual application.

python -m bench.paint CONFIG...

Both programs run in alternation on terminals of their own, without changes in the database. The
ratios hardly depend on other work of the machine, and the CPU time of a key not at all.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from typing import Final

import psutil

from bench.measure import percentiles
from bench.report import Figures
from bench.screen import Screen, Terminal

DASHBOARD: Final = (sys.executable, "-m", "draftsman_tui", "dashboard")
BARE: Final = (sys.executable, "-m", "bench.bare_app")
STARTS: Final = 7
KEYS: Final = 120
"""Keys of each program, in turns of TURN."""
TURN: Final = 20
GAP: Final = (0.05, 0.15)
"""Range of seconds between two keys."""
DOWN: Final = "\x1b[B"
SETTLE: Final = 2.0
"""Seconds between the first paint and the first key."""


async def paints(where: Mapping[str, str]) -> Figures:
    """Return the times and the CPU of a dashboard, and their ratios to the bare application."""
    figures = await _starts(where)
    return figures | await _presses(where)


async def _starts(where: Mapping[str, str]) -> Figures:
    """Start both programs in turn: to the first output, and to the rows."""
    times: dict[str, list[float]] = {name: [] for name in ("frame", "rows", "bare")}
    for _ in range(STARTS):
        terminal = Terminal(DASHBOARD, where)
        at = await terminal.shows(lambda now: cursor(now) is not None, "the rows")
        times["frame"].append(((terminal.taken or at) - terminal.began) * 1e3)
        times["rows"].append((at - terminal.began) * 1e3)
        await terminal.close("q")
        bare = Terminal(BARE, where)
        at = await bare.shows(lambda now: bare_row(now) is not None, "the bare table")
        times["bare"].append((at - bare.began) * 1e3)
        await bare.close("q")
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "first_frame_ms": medians["frame"],
        "first_rows_ms": medians["rows"],
        "bare_first_ms": medians["bare"],
        "first_frame_ratio": medians["frame"] / medians["bare"],
        "first_rows_ratio": medians["rows"] / medians["bare"],
    }


async def _presses(where: Mapping[str, str]) -> Figures:
    """Press keys in both programs, in turns."""
    terminals = {"key": Terminal(DASHBOARD, where), "bare_key": Terminal(BARE, where)}
    looks = {"key": cursor, "bare_key": bare_row}
    times: dict[str, list[float]] = {name: [] for name in terminals}
    used = dict.fromkeys(terminals, 0.0)
    for name, terminal in terminals.items():
        await terminal.shows(_is_ready(looks[name]), name)
    await asyncio.sleep(SETTLE)
    for _ in range(KEYS // TURN):
        for name, terminal in terminals.items():
            before = _cpu(terminal.pid)
            for _ in range(TURN):
                times[name].append(await _press(terminal, looks[name]))
            used[name] += _cpu(terminal.pid) - before
    for terminal in terminals.values():
        await terminal.close("q")
    figures: Figures = {}
    for name, values in times.items():
        shares = percentiles(values)
        figures |= {f"{name}_p50_ms": shares["p50_ms"], f"{name}_p95_ms": _p95(values)}
        figures[f"{name}_cpu_ms"] = used[name] / KEYS * 1e3
    for figure in ("p50_ms", "p95_ms", "cpu_ms"):
        ratio = figure.replace("_ms", "_ratio")
        figures[f"key_{ratio}"] = figures[f"key_{figure}"] / figures[f"bare_key_{figure}"]
    return figures


async def _press(terminal: Terminal, look: Callable[[Screen], int | None]) -> float:
    """Move the cursor down; return the milliseconds until the screen shows it."""
    await asyncio.sleep(random.uniform(*GAP))
    was = look(terminal.screen)
    return await terminal.key(DOWN, lambda now: look(now) not in (None, was))


def cursor(screen: Screen) -> int | None:
    """Return the number of the job under the cursor; None without rows."""
    line = next((line for line in screen.lines if line.startswith("▸")), "")
    name = line.lstrip("▸● ").partition(" ")[0].removeprefix("D-")
    return int(name) if name.isdecimal() else None


def bare_row(screen: Screen) -> int | None:
    """Return the number of the row of the bare application; None before it is drawn."""
    line = next((line for line in reversed(screen.lines) if line.startswith("row ")), "")
    drawn = any(row.startswith(" cell ") for row in screen.lines)
    return int(line.split()[1]) if line and drawn else None


def _is_ready(look: Callable[[Screen], int | None]) -> Callable[[Screen], bool]:
    return lambda now: look(now) is not None


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def _cpu(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


async def main(configs: list[str]) -> None:
    """Print the figures of the dashboards with these configurations."""
    for config in configs:
        figures = await paints({"DRAFTSMAN_CONFIG": config})
        print(config, *(f"{name} {value:.2f}" for name, value in figures.items()), sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
