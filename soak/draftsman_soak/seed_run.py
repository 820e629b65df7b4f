"""One seed, from an empty folder to the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from draftsman.domain.job import TERMINAL, Status
from draftsman.errors import DraftsmanError
from draftsman.handlers.clone.sample_repo import make_sample_repo
from draftsman.runtime import Runtime, open_runtime
from draftsman_soak.database_clock import DatabaseClock
from draftsman_soak.faults import FaultInjector
from draftsman_soak.final_state import FinalState, read_final_state
from draftsman_soak.ledger import Ledger, retry_until_reachable
from draftsman_soak.load_generator import LoadGenerator
from draftsman_soak.seed_config import GRACE
from draftsman_soak.seed_environment import SeedEnvironment
from draftsman_soak.simulated_users import SimulatedUsers
from draftsman_soak.worker_fleet import WorkerFleet, lacks_time_namespace

PLANNED: Final = (Status.SCHEDULED, Status.RETRYING)
LOOK: Final = 0.3
"""Seconds between two looks whether all has ended."""
WINDS: Final = 20
"""How often the clock is put on at the end: each time to the last planned time."""


class SeedRun:
    """One seed in a folder of its own."""

    def __init__(self, seed: int, folder: Path, workers: int) -> None:
        self.ledger = Ledger()
        self.stage = "starting"
        self.began = time.monotonic()
        """When the load began, once it has."""
        self.place = SeedEnvironment(folder, git=shutil.which("git") is not None)
        self._chance = random.Random(seed)
        self._workers = workers
        self._clock = DatabaseClock(self.place.server)
        if not self.place.git:
            self.ledger.unsupported.add("the sample agent: git is not installed")
        if reason := lacks_time_namespace():
            self.ledger.unsupported.add(f"time namespace: {reason}")

    async def run(self, seconds: float) -> FinalState:
        """Load and break for so long, let all of it end, and return what is there then."""
        async with self._sessions() as (left, right):
            sessions = (left, right)
            crowd = SimulatedUsers(sessions, self.ledger, self._stream())
            crew = WorkerFleet(self._workers, self.place.config, self.ledger)
            crew.start()
            async with self._meanwhile(crew.run), self._meanwhile(crowd.run):
                await self._storm(sessions, crowd, crew, seconds)
                crowd.cancels = False
                await self._calm(left)
            self.stage = "stopping"
            await crew.stop()
            self.stage = "looking"
            return await read_final_state(left, self.ledger.jobs, self.place.effects)

    async def _storm(
        self,
        sessions: tuple[Runtime, Runtime],
        crowd: SimulatedUsers,
        crew: WorkerFleet,
        seconds: float,
    ) -> None:
        load = LoadGenerator(
            sessions,
            self.ledger,
            self._stream(),
            self.place.effects,
            await self._repo(),
            crowd.made,
        )
        faults = FaultInjector(
            self.place,
            crew,
            sessions[0],
            self.ledger,
            self._clock,
            self._stream(),
            agents=self.place.git,
            other_clocks=not any(lack.startswith("time") for lack in self.ledger.unsupported),
        )
        self.stage, self.began = "loaded", time.monotonic()
        async with self._meanwhile(load.run):
            try:
                await faults.run(seconds)
            except DraftsmanError as error:
                self._surprise(error)

    async def _calm(self, session: Runtime) -> None:
        """Wait until every job has ended, as long as they move or people are asked.

        What is planned for later, by a clock that was put back or a delay that grew, is not stuck:
        the clock is put on to it.
        """
        self.stage = "settling"
        if self._clock.offset < self._clock.max_offset:
            await self._clock.shift(0)
        winds, deadline = 0, time.monotonic() + GRACE
        last = deadline + 2 * GRACE
        while time.monotonic() < min(deadline, last):
            stats = await retry_until_reachable(lambda: session.read_model.stats())
            live = {status for status, count in stats.jobs.items() if count} - TERMINAL
            if not live:
                return
            if live <= set(PLANNED) and winds < WINDS:
                winds += 1
                await self._wind(session)
                deadline = time.monotonic() + GRACE
            elif stats.open_questions:
                deadline = time.monotonic() + GRACE
            await asyncio.sleep(LOOK)

    async def _wind(self, session: Runtime) -> None:
        """Put the clock on to the last time that a job waits for."""
        jobs = await retry_until_reachable(
            lambda: session.read_model.jobs(statuses=PLANNED, limit=1000)
        )
        due = [at for job in jobs if (at := job.next_retry_at or job.run_at) is not None]
        now = await retry_until_reachable(lambda: session.checkpoints.now())
        if due and (ahead := (max(due) - now).total_seconds()) > LOOK:
            await self._clock.shift(ahead)

    async def _repo(self) -> Path | None:
        if not self.place.git:
            return None
        await make_sample_repo(self.place.folder / "inventory")
        return self.place.folder / "inventory"

    def _stream(self) -> random.Random:
        """Return chances of its own for one part, so that the order of the parts is no matter."""
        return random.Random(self._chance.random())

    @asynccontextmanager
    async def _sessions(self) -> AsyncIterator[tuple[Runtime, Runtime]]:
        """Connect twice: races are between sessions."""
        settings = self.place.settings
        async with open_runtime(settings) as left, open_runtime(settings) as right:
            yield left, right

    @asynccontextmanager
    async def _meanwhile(self, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run it beside the block; what it should not have raised is a finding, and it goes on."""
        task = asyncio.create_task(self._steadily(work))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _steadily(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except DraftsmanError as error:
                self._surprise(error)
                await asyncio.sleep(1)

    def _surprise(self, error: DraftsmanError) -> None:
        self.ledger.unexpected_errors.append(f"unexpected {type(error).__name__}: {error}")
