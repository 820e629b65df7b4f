"""Intervals of sweeps across steps of the wall clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Self

import apscheduler.executors.base
import apscheduler.schedulers.base
import apscheduler.triggers.interval
import pytest

from draftsman.worker import leader as steady_scheduler
from draftsman.worker.leader import SteadyScheduler
from tests.support.cases import cases

INTERVAL = 0.2
HOUR = 3600.0


class WallClock:
    """The wall clock of the scheduler, which a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.step = 0.0
        real = time.time
        clock = self

        class Moved(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return cls.fromtimestamp(real() + clock.step, tz)

        monkeypatch.setattr(time, "time", lambda: real() + self.step)
        for module in (
            apscheduler.executors.base,
            apscheduler.schedulers.base,
            apscheduler.triggers.interval,
            steady_scheduler,
        ):
            monkeypatch.setattr(module, "datetime", Moved)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """Give a clock that can be moved."""
    return WallClock(monkeypatch)


@pytest.fixture
async def scheduler(wall: WallClock) -> AsyncIterator[SteadyScheduler]:
    """Give a scheduler that is running."""
    scheduler = SteadyScheduler()
    scheduler.start()
    yield scheduler
    scheduler.shutdown(wait=False)


@cases("step", [2 * HOUR, -2 * HOUR, 0.15, -0.15])
async def test_a_step_of_the_clock_neither_stalls_nor_repeats_a_sweep(
    scheduler: SteadyScheduler, wall: WallClock, step: float
) -> None:
    runs: asyncio.Queue[float] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def run() -> None:
        runs.put_nowait(loop.time())

    async def other() -> None:
        pytest.fail("a sweep ran more than an hour early")

    scheduler.repeat(run, "often", INTERVAL)
    scheduler.repeat(other, "rarely", HOUR)
    times = [await asyncio.wait_for(runs.get(), 20)]
    wall.step += step
    times += [await asyncio.wait_for(runs.get(), 20) for _ in range(3)]
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) > INTERVAL / 2, "a sweep was repeated"
    left = scheduler.get_job("rarely").next_run_time - _now()
    assert timedelta(seconds=HOUR - 60) < left <= timedelta(seconds=HOUR)
    for name in ("often", "rarely"):
        scheduler.remove_job(name)


async def test_a_late_sweep_runs_once(scheduler: SteadyScheduler) -> None:
    """The event loop was busy for longer than APScheduler tolerates by default."""
    runs: asyncio.Queue[None] = asyncio.Queue()

    async def run() -> None:
        runs.put_nowait(None)

    scheduler.repeat(run, "rarely", HOUR)
    scheduler.get_job("rarely").modify(next_run_time=datetime.now(UTC) - timedelta(seconds=30))
    await asyncio.wait_for(runs.get(), 20)
    assert runs.empty()


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
