"""The dashboard on a terminal: time to the first frame, CPU and memory.

Meanwhile jobs are submitted and completed, with 200 changes a second: four for each job.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import psutil

from bench.history import Backlog, seed_draftsman
from bench.measure import NEVER, Run, percentiles
from bench.paint import paints
from bench.report import Figures
from bench.resource_usage import cpu_seconds
from bench.screen import Screen, Terminal
from bench.server import Session, session

SMALL = Backlog(900, 100)
"""Figure of a small database that the figure over a large history is compared with."""
COMMAND = (sys.executable, "-m", "draftsman_tui", "dashboard")
AT_ONCE = 5
EVERY = 0.1
"""Number of jobs, and the seconds between submissions of that many: 50 a second."""
STARTS = 5
"""Number of starts."""
GAP = (0.15, 0.45)
"""Range of seconds between two keys, so that they fall at any moment of a refresh."""
SETTLE = 5.0
"""Seconds from the start until it counts as idle."""
IDLE = 60.0
"""Seconds without changes and keys."""
SAMPLING = 10.0
"""Seconds between two samples of the memory."""
FIRST = 5
"""Line of the first row, without rules between groups."""
VIEWS = (("inbox", "2"), ("runs", "4"), ("events", "7"), ("workers", "6"), ("jobs", "1"))
MIB = 2**20


async def measured(run: Run, minutes: float, idle: float = IDLE) -> Figures:
    """Measure start, keys and idle time, and over a long history the memory for some minutes."""
    if not run.past:
        async with session(run.url) as into:
            await seed_draftsman(into.conn, SMALL)
            await into.conn.execute("RESET session_replication_role")
            await into.conn.execute("VACUUM (FREEZE, ANALYZE)")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "draftsman.toml")
        config.touch()
        where = {"DRAFTSMAN_DATABASE_URL": run.url, "DRAFTSMAN_CONFIG": str(config)}
        where |= {"DRAFTSMAN_DATA_DIR": folder}
        figures = await _idle(run, where, idle)
        figures |= await paints(where)
        async with _changes(run):
            figures |= await _starts(where)
            figures |= await _keys(run, where, minutes if run.past else 0)
    return figures


async def _starts(where: dict[str, str]) -> Figures:
    """Start it repeatedly: the times from the start of the process and from the first frame."""
    whole = list[float]()
    painted = list[float]()
    frames = list[float]()
    for _ in range(STARTS):
        terminal = Terminal(COMMAND, where)
        at = await terminal.shows(_has_rows, "the first paint")
        whole.append((at - terminal.began) * 1e3)
        painted.append((at - (terminal.taken or terminal.began)) * 1e3)
        frames.append(((terminal.taken or at) - terminal.began) * 1e3)
        await terminal.close("q")
    times = {"start_ms": whole, "frame_ms": frames, "paint_ms": painted}
    return {name: percentiles(values)["p50_ms"] for name, values in times.items()}


async def _keys(run: Run, where: dict[str, str], minutes: float) -> Figures:
    """Press keys during changes, then continue for some minutes and sample the memory."""
    figures: Figures = {}
    async with session(run.url) as admin:
        others = await _backends(admin)
        terminal = Terminal(COMMAND, where)
        await terminal.shows(_has_rows, "the first paint")
        # in the default order, rows change their groups between a key and the paint
        await terminal.key(":group-by none\r", lambda now: "not grouped" in _title(now))
        await asyncio.sleep(SETTLE)
        own = _cpu(terminal.pid)
        server = await _backends(admin, others)
        began = time.monotonic()
        for name, press in KEYS.items():
            await terminal.key("1", lambda now: _titled(now, "jobs"))
            times = [await press(terminal, nth) for nth in range(run.jobs)]
            figures |= {f"{name}_{key}": value for key, value in percentiles(times).items()}
        took = time.monotonic() - began
        figures["busy_cpu"] = (_cpu(terminal.pid) - own) / took * 100
        figures["busy_server"] = _used(await _backends(admin, others), server) / took * 100
    if minutes:
        figures |= await _memory(terminal, minutes)
    await terminal.close("q")
    return figures


async def _idle(run: Run, where: dict[str, str], seconds: float) -> Figures:
    """Measure the CPU of the idle dashboard and of its database sessions."""
    terminal = Terminal(COMMAND, where)
    await terminal.shows(_has_rows, "the first paint")
    await asyncio.sleep(SETTLE)
    async with session(run.url) as admin:
        own = _cpu(terminal.pid)
        server = await _backends(admin)
        await asyncio.sleep(seconds)
        cost = {"idle_cpu": (_cpu(terminal.pid) - own) / seconds * 100}
        cost["idle_server"] = _used(await _backends(admin), server) / seconds * 100
    await terminal.close("q")
    return cost


async def _memory(terminal: Terminal, minutes: float) -> Figures:
    """Press a key each second; return the resident memory and its growth per minute."""
    process = psutil.Process(terminal.pid)
    samples = list[tuple[float, float]]()
    began = time.monotonic()
    for keys in _wander():
        now = time.monotonic() - began
        if not samples or now - samples[-1][0] * 60 >= SAMPLING:
            samples.append((now / 60, process.memory_info().rss / MIB))
        if now >= minutes * 60:
            break
        terminal.press(keys)
        await asyncio.sleep(1.0)
    steady = samples[len(samples) // 4 :]
    return {"rss_mib": samples[-1][1], "grows_mib": _slope(steady)}


def _wander() -> Iterator[str]:
    """Move through tables, rows and a filter, without end."""
    while True:
        for view in "123456781":
            yield view
            yield from "jjj"
        yield from ("/", "noop\r", "\x1b")


async def _down(terminal: Terminal, nth: int) -> float:
    """Move to the next row, starting at the first row, since new rows arrive at a high rate."""
    await terminal.key("g", lambda now: _cursor(now) == FIRST)
    await _gap()
    below = _row(terminal.screen, 1)
    return await terminal.key("j", lambda now: _row(now) == below)


async def _page(terminal: Terminal, nth: int) -> float:
    """Open the next screen."""
    await terminal.key("g", lambda now: _cursor(now) == FIRST)
    await _gap()
    was = _row(terminal.screen)
    return await terminal.key("\x1b[6~", lambda now: _row(now) not in ("", was))


async def _switch(terminal: Terminal, nth: int) -> float:
    """Open another table."""
    await _gap()
    name, key = VIEWS[nth % len(VIEWS)]
    return await terminal.key(key, lambda now: _titled(now, name))


async def _filter(terminal: Terminal, nth: int) -> float:
    """Enter a filter; the time starts at its submission."""
    await terminal.key("\x1b", lambda now: _titled(now, "jobs") and "/no" not in _title(now))
    await terminal.key("/", lambda now: now.lines[-1].strip().startswith("/"))
    terminal.press("noop")
    await _gap()
    return await terminal.key("\r", lambda now: _titled(now, "jobs") and "/no" in _title(now))


async def _gap() -> None:
    await asyncio.sleep(random.uniform(*GAP))


KEYS = {"down": _down, "page": _page, "view": _switch, "filter": _filter}


def _title(screen: Screen) -> str:
    return screen.lines[2]


def _titled(screen: Screen, name: str) -> bool:
    """Return whether a table is displayed, with its number of rows."""
    title = _title(screen)
    return title.strip().startswith(f"{name} ·") and "looking" not in title


def _has_rows(screen: Screen) -> bool:
    return _cursor(screen) > 0


def _cursor(screen: Screen) -> int:
    """Return the line of the cursor, 0 without rows."""
    return next((nth for nth, line in enumerate(screen.lines) if line.startswith("▸")), 0)


def _row(screen: Screen, below: int = 0) -> str:
    """Return the name of the row under the cursor, or of a row below it."""
    words = screen.lines[_cursor(screen) + below].lstrip("▸● ").split()
    return words[0] if _cursor(screen) and words else ""


def _cpu(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


async def _backends(admin: Session, others: Collection[int] = ()) -> dict[int, float]:
    """Return the CPU seconds of draftsman's sessions in this database, except given sessions."""
    pids = await admin.value(
        "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'draftsman %'"
    )
    return {pid: cpu_seconds(pid) for pid in pids or () if pid not in others}


def _used(after: dict[int, float], before: dict[int, float]) -> float:
    return sum(spent - before.get(pid, 0.0) for pid, spent in after.items())


def _slope(samples: list[tuple[float, float]]) -> float:
    """Return the slope of a least-squares line."""
    x, y = (sum(values) / len(samples) for values in zip(*samples, strict=True))
    over = sum((one - x) * (other - y) for one, other in samples)
    return float(over / max(1e-9, sum((one - x) ** 2 for one, _ in samples)))


@asynccontextmanager
async def _changes(run: Run) -> AsyncIterator[None]:
    """Submit and complete fifty jobs a second."""
    async with (
        run.side.child("work", run.url, "fast", NEVER) as worker,
        run.side.child("produce", run.url) as producer,
    ):
        await worker.hear("ready")
        await producer.hear("ready")
        worker.say("go")

        async def submit() -> None:
            due = time.monotonic()
            for first in count(0, AT_ONCE):
                await producer.submit(first, AT_ONCE, many=False)
                due += EVERY
                await asyncio.sleep(max(0.0, due - time.monotonic()))

        submitting = asyncio.create_task(submit())
        try:
            await worker.hear("first")
            yield
        finally:
            submitting.cancel()
            await asyncio.gather(submitting, return_exceptions=True)
        await run.until_idle()
        worker.say("stop")
