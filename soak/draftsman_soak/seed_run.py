"""Run of a seed, from an empty folder to its final state."""

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

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.errors import DraftsmanError
from draftsman.jobs.job import TERMINAL, Status
from draftsman.runtime import Runtime, open_runtime
from draftsman_soak.fault_injection import DatabaseClock, prepare_refusals
from draftsman_soak.faults import FaultInjector
from draftsman_soak.final_state import FinalState, read_final_state
from draftsman_soak.host_clock import HostClock, lacks_mount_namespace
from draftsman_soak.ledger import Ledger, retry_until_reachable
from draftsman_soak.load_generator import LoadGenerator
from draftsman_soak.pooler import Pooler, find_pgbouncer
from draftsman_soak.seed_config import GRACE
from draftsman_soak.seed_environment import SeedEnvironment
from draftsman_soak.silent_network import SilentNetwork
from draftsman_soak.simulated_users import SimulatedUsers
from draftsman_soak.worker_fleet import WorkerFleet, lacks_time_namespace

PLANNED: Final = (Status.SCHEDULED, Status.RETRYING)
LOOK: Final = 0.3
"""Seconds between two checks for live jobs."""
MAX_ADVANCES: Final = 20
"""Maximum number of clock advances at the end, each to the last scheduled time."""


class SeedRun:
    """A seed in a separate folder."""

    def __init__(self, seed: int, folder: Path, workers: int) -> None:
        self.ledger = Ledger()
        self.stage = "starting"
        self.began = time.monotonic()
        """Start of the load, in monotonic seconds."""
        self.place = SeedEnvironment(folder, git=shutil.which("git") is not None)
        self._chance = random.Random(seed)
        self._workers = workers
        self._clock = DatabaseClock(self.place.server)
        self._network = SilentNetwork(self.place.server)
        self._pooler: Pooler | None = None
        self._host_clock: HostClock | None = None
        if not self.place.git:
            self.ledger.unsupported.add("the sample agent: git is not installed")
        if reason := lacks_time_namespace():
            self.ledger.unsupported.add(f"time namespace: {reason}")
        if (program := find_pgbouncer()) is None:
            self.ledger.unsupported.add("a pooler: PgBouncer is not installed")
        else:
            self._pooler = Pooler(program, self.place.server, self._network, folder / "pooler")
        if reason := lacks_mount_namespace(folder):
            self.ledger.unsupported.add(f"a step of the host's clock: {reason}")
        else:
            self._host_clock = HostClock(folder / "proc_stat")

    async def run(self, seconds: float) -> FinalState:
        """Run load and faults for a time, wait for all jobs to end, and return the final state."""
        async with self._sessions() as (left, right), self._network.open():
            sessions = (left, right)
            await asyncio.to_thread(prepare_refusals, self.place.server)
            if self._pooler is not None:
                self._pooler.start()
            crowd = SimulatedUsers(sessions, self.ledger, self._stream())
            crew = WorkerFleet(
                self._workers,
                self.place,
                self.ledger,
                network=self._network,
                pooler=self._pooler,
                host_clock=self._host_clock,
            )
            crew.start()
            async with self._in_background(crew.run), self._in_background(crowd.run):
                await self._inject(sessions, crowd, crew, seconds)
                crowd.cancels = False
                await self._settle(left)
            self.stage = "stopping"
            await crew.stop()
            self.stage = "looking"
            return await read_final_state(left, self.ledger.jobs, self.place.effects)

    async def _inject(
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
            load,
            self._host_clock,
            agents=self.place.git,
            other_clocks=not any(lack.startswith("time") for lack in self.ledger.unsupported),
        )
        self.stage = "loaded"
        self.began = time.monotonic()
        async with self._in_background(load.run):
            try:
                await faults.run(seconds)
            except DraftsmanError as error:
                self._record_error(error)

    async def _settle(self, session: Runtime) -> None:
        """Wait until every job has ended, as long as there is progress or an open question.

        Jobs scheduled for later, after a clock shift or a long retry delay, are not stuck: the
        clock is advanced to their time.
        """
        self.stage = "settling"
        if self._clock.offset < self._clock.max_offset:
            await self._clock.shift(0)
        advances = 0
        deadline = time.monotonic() + GRACE
        last = deadline + 2 * GRACE
        while time.monotonic() < min(deadline, last):
            stats = await retry_until_reachable(lambda: session.read_model.stats())
            live = {status for status, count in stats.jobs.items() if count} - TERMINAL
            if not live:
                return
            if live <= set(PLANNED) and advances < MAX_ADVANCES:
                advances += 1
                await self._advance_clock(session)
                deadline = time.monotonic() + GRACE
            elif stats.open_questions:
                deadline = time.monotonic() + GRACE
            await asyncio.sleep(LOOK)

    async def _advance_clock(self, session: Runtime) -> None:
        """Advance the clock to the last scheduled time."""
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
        """Return an independent random stream, so that components do not affect each other."""
        return random.Random(self._chance.random())

    @asynccontextmanager
    async def _sessions(self) -> AsyncIterator[tuple[Runtime, Runtime]]:
        """Open two sessions, since races occur between sessions."""
        settings = self.place.settings
        async with open_runtime(settings) as left, open_runtime(settings) as right:
            yield left, right

    @asynccontextmanager
    async def _in_background(self, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run a task during the block; an unexpected error is recorded, and the task restarted."""
        task = asyncio.create_task(self._run_with_restarts(work))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run_with_restarts(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except DraftsmanError as error:
                self._record_error(error)
                await asyncio.sleep(1)

    def _record_error(self, error: DraftsmanError) -> None:
        self.ledger.unexpected_errors.append(f"unexpected {type(error).__name__}: {error}")
