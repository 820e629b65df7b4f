"""Fault injection: a shuffled deck of faults, reshuffled when it is empty."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psutil

from draftsman.errors import DatabaseUnreachable
from draftsman.runtime import Runtime
from draftsman_soak.actors import actor_for
from draftsman_soak.fault_injection import (
    DatabaseClock,
    accept_ends,
    cut_connections,
    make_read_only,
    make_writable,
    open_transaction,
    refuse_end,
    stall,
)
from draftsman_soak.host_clock import HostClock
from draftsman_soak.ledger import Fault, Ledger, retry_until_reachable
from draftsman_soak.load_generator import LoadGenerator
from draftsman_soak.seed_config import LEASE, PEOPLE
from draftsman_soak.seed_environment import SeedEnvironment
from draftsman_soak.worker_fleet import WorkerFleet, WorkerSlot

EVERY: Final = (0.7, 3.0)
"""Seconds between two faults; short, to hit workers during startup as well."""
DOWN: Final = (0.0, 2.0)
"""Seconds of a database outage."""
MIXED: Final = (0.5, 3.0)
"""Seconds during which old and new sessions have different clocks."""
REFUSED: Final = (1.0, LEASE + 3.0)
"""Seconds for which the database refuses the end of a run."""
OPEN: Final = (4.0, 6.0)
"""Seconds for which a client leaves a transaction open."""
STEPS: Final = (2, 3600)
"""Seconds by which the clock of the host is stepped, both on and back."""
REVIVAL: Final = 20.0
"""Seconds for the workers to restart a killed server before the soak does."""
LOOKOUT: Final = 5.0
"""Seconds to wait for a running agent to kill."""
PING: Final = 0.1
"""Seconds between two checks."""
RUN: Final = re.compile(r"/runs/D-(\d+)\.")


@dataclass(slots=True)
class FaultInjector:
    """Injects faults in sequence and reverts each."""

    place: SeedEnvironment
    crew: WorkerFleet
    session: Runtime
    ledger: Ledger
    clock: DatabaseClock
    chance: random.Random
    load: LoadGenerator
    host_clock: HostClock | None
    agents: bool = True
    other_clocks: bool = True
    _reverting: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    """Faults in the background that are not yet reverted."""

    async def run(self, seconds: float) -> None:
        """Inject faults for a time; return when all are reverted."""
        end = time.monotonic() + seconds
        deck = list[str]()
        try:
            while (remaining := end - time.monotonic()) > 0:
                await asyncio.sleep(min(remaining, self.chance.uniform(*EVERY)))
                deck = deck or self._deck()
                if time.monotonic() < end:
                    await self._act(deck.pop())
        finally:
            await asyncio.gather(*self._reverting, return_exceptions=True)
            await retry_until_reachable(lambda: asyncio.to_thread(make_writable, self.place.server))
            await retry_until_reachable(lambda: asyncio.to_thread(accept_ends, self.place.server))

    async def _act(self, kind: str) -> None:
        before = len(self.ledger.faults)
        await self._acts()[kind]()
        if len(self.ledger.faults) == before:
            self.ledger.missed[kind] += 1

    def _deck(self) -> list[str]:
        """Return the kinds of the next round, last first; worker kills are most frequent."""
        kinds = [*self._acts(), *["worker killed"] * 4, "worker stopped", "worker drained"]
        kinds = [kind for kind in kinds if self.agents or kind != "agent killed"]
        kinds = [kind for kind in kinds if self.other_clocks or kind != "worker on another clock"]
        kinds = [kind for kind in kinds if self.host_clock or kind != "clock of the host stepped"]
        remote = self.crew.remote
        has_pooler = remote is not None and remote.pooler is not None
        kinds = [kind for kind in kinds if has_pooler or kind != "pooler killed"]
        self.chance.shuffle(kinds)
        return [*kinds, "worker killed"]

    def _acts(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "worker killed": self._kill_worker,
            "worker stopped": self._stop_worker,
            "worker drained": self._drain_worker,
            "worker on another clock": self._other_clock,
            "agent killed": self._kill_agent,
            "supervisor killed": self._kill_supervisor,
            "database stopped, fast": lambda: self._stop_database("fast"),
            "database stopped, immediate": lambda: self._stop_database("immediate"),
            "database killed": self._kill_database,
            "connections cut": self._cut,
            "clock put on": lambda: self._shift(1),
            "clock put back": lambda: self._shift(-1),
            "clock of the host stepped": self._step_host_clock,
            "network silent": self._silence_network,
            "pooler killed": self._kill_pooler,
            "server read-only": self._make_read_only,
            "end of a run refused": self._refuse_end,
            "transaction of a client open": self._leave_transaction_open,
            "type without a worker": self._remove_rare_worker,
        }

    async def _kill_worker(self) -> None:
        slot, worker = self._random_worker()
        if worker is None:
            return
        name = await self._worker_id(worker)
        if not slot.supervised:
            slot.kill()
        with contextlib.suppress(psutil.Error):
            worker.kill()
        self._note("worker killed", worker=name)

    async def _stop_worker(self) -> None:
        """Suspend a worker for longer than its lease, in the background."""
        _, worker = self._random_worker()
        if worker is None:
            return
        name = await self._worker_id(worker)
        with contextlib.suppress(psutil.Error):
            worker.send_signal(signal.SIGSTOP)
            self._note("worker stopped", worker=name)
            self._revert_later(self._wake(worker, LEASE + self.chance.uniform(1, 3)))

    async def _wake(self, worker: psutil.Process, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            with contextlib.suppress(psutil.Error):
                worker.send_signal(signal.SIGCONT)

    async def _drain_worker(self) -> None:
        slot, worker = self._random_worker()
        if worker is not None:
            name = await self._worker_id(worker)
            slot.terminate()
            self._note("worker drained", worker=name)

    async def _other_clock(self) -> None:
        """Kill an unsupervised worker; its successor has another monotonic clock."""
        hands = [slot for slot in self.crew.slots if not slot.supervised and slot.worker()]
        if hands:
            slot = self.chance.choice(hands)
            slot.other_clock = not slot.other_clock
            worker = slot.worker()
            name = await self._worker_id(worker) if worker else None
            slot.kill()
            self._note("worker on another clock", worker=name)

    async def _kill_agent(self) -> None:
        for _ in range(round(LOOKOUT / PING)):
            if agents := [agent for slot in self.crew.slots for agent in slot.agents()]:
                break
            await asyncio.sleep(PING)
        if agents:
            agent = self.chance.choice(agents)
            with contextlib.suppress(psutil.Error):
                match = RUN.search(agent.cwd())
                agent.kill()
                self._note("agent killed", job=int(match[1]) if match else None)

    async def _kill_supervisor(self) -> None:
        """Kill the supervisor; its worker detects that and drains."""
        slot = self.crew.slots[0]
        worker = slot.worker()
        if worker is not None:
            name = await self._worker_id(worker)
            slot.kill()
            self._note("supervisor killed", worker=name)

    async def _stop_database(self, mode: str) -> None:
        self._note(f"database stopped, {mode}")
        await asyncio.to_thread(self.place.server.stop, mode)  # type: ignore[arg-type]
        await asyncio.sleep(self.chance.uniform(*DOWN))
        await asyncio.to_thread(self.place.server.ensure)

    async def _kill_database(self) -> None:
        """Kill the server's main process; the workers restart it."""
        pid = (await asyncio.to_thread(self.place.server.status)).pid
        if pid is None:
            return
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).kill()
            self._note("database killed")
        for _ in range(round(REVIVAL / PING)):
            if (await asyncio.to_thread(self.place.server.status)).version:
                break
            await asyncio.sleep(PING)
        await asyncio.to_thread(self.place.server.ensure)

    async def _cut(self) -> None:
        share = self.chance.choice((0.3, 1.0))
        with contextlib.suppress(DatabaseUnreachable):
            await asyncio.to_thread(cut_connections, self.place.server, share)
            self._note("connections cut")

    async def _shift(self, sign: int) -> None:
        """Shift the clock of new sessions, wait, then end the old sessions."""
        minutes = self.chance.uniform(0.5, 5) * sign
        await self.clock.set(self.clock.offset + 60 * minutes)
        self._note("clock put on" if sign > 0 else "clock put back", interrupts=False)
        with contextlib.suppress(DatabaseUnreachable):
            await asyncio.to_thread(cut_connections, self.place.server, 0.5)
        await asyncio.sleep(self.chance.uniform(*MIXED))
        await self.clock.apply_to_all()

    async def _step_host_clock(self) -> None:
        """Step the wall clock of the host, which must change nothing."""
        if self.host_clock is not None:
            step = self.chance.choice(STEPS) * self.chance.choice((1, -1))
            self.host_clock.step(step)
            self._note("clock of the host stepped", interrupts=False)

    async def _silence_network(self) -> None:
        """Drop all packets of a worker for longer than its lease, in the background."""
        slot = self.crew.remote
        if slot is None or slot.network is None or slot.network.is_silent:
            return
        worker = slot.worker()
        name = await self._worker_id(worker) if worker else None
        slot.network.silence()
        self._note("network silent", worker=name)
        self._revert_later(self._restore_network(LEASE + self.chance.uniform(1, 3)))

    async def _restore_network(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            if (slot := self.crew.remote) is not None and slot.network is not None:
                slot.network.restore()

    async def _kill_pooler(self) -> None:
        slot = self.crew.remote
        if slot is None or slot.pooler is None:
            return
        worker = slot.worker()
        name = await self._worker_id(worker) if worker else None
        await asyncio.to_thread(slot.pooler.kill)
        self._note("pooler killed", worker=name)
        await asyncio.sleep(self.chance.uniform(*DOWN))
        slot.pooler.start()

    async def _make_read_only(self) -> None:
        """Let sessions begin read-only for a while, and keep those that began so."""
        server = self.place.server
        try:
            await asyncio.to_thread(make_read_only, server)
            self._note("server read-only")
            await asyncio.to_thread(cut_connections, server, self.chance.choice((0.3, 1.0)))
            await asyncio.sleep(self.chance.uniform(*MIXED))
        except DatabaseUnreachable:
            pass
        finally:
            await retry_until_reachable(lambda: asyncio.to_thread(make_writable, server))

    async def _refuse_end(self) -> None:
        """Refuse the end of a run for a while, in the background."""
        with contextlib.suppress(DatabaseUnreachable):
            job = await asyncio.to_thread(refuse_end, self.place.server)
            if job is not None:
                self._note("end of a run refused", job=job)
                self._revert_later(self._accept_ends(self.chance.uniform(*REFUSED)))

    async def _accept_ends(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            await retry_until_reachable(lambda: asyncio.to_thread(accept_ends, self.place.server))

    async def _leave_transaction_open(self) -> None:
        """Submit in a transaction that stays open, with a limit and a key of other jobs."""
        requests = [self.load.request(name) for name in ("steps", "rest", "flaky")]
        actor = actor_for(PEOPLE[0])
        with contextlib.suppress(DatabaseUnreachable):
            async with open_transaction(self.place.server) as connection:
                jobs = await self.session.submissions.submit_many(
                    requests, actor, connection=connection
                )
                self._note("transaction of a client open", interrupts=False)
                await self.load.submit(self.load.request("ask"))  # a worker can run it meanwhile
                stalled = await stall(connection, self.chance.uniform(*OPEN), self._able_workers)
                if stalled is not None:
                    self.ledger.stalls.append(stalled)
                if self.chance.random() < 0.5:
                    await connection.commit()
                    for request, job in zip(requests, jobs, strict=True):
                        self.load.acknowledge(request, job.number)

    async def _remove_rare_worker(self) -> None:
        """Kill the only worker of a type for a while, in the background; its jobs must wait."""
        slot = self.crew.rare
        worker = slot.worker()
        if slot.supervised or worker is None or slot.is_away:
            return
        name = await self._worker_id(worker)
        slot.is_away = True
        slot.kill()
        self._note("type without a worker", worker=name)
        self._revert_later(self._return(slot, self.chance.uniform(1, 2 * LEASE)))

    async def _return(self, slot: WorkerSlot, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            slot.is_away = False

    def _revert_later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._reverting.add(task)
        task.add_done_callback(self._reverting.discard)

    def _random_worker(self) -> tuple[WorkerSlot, psutil.Process | None]:
        running = [slot for slot in self.crew.slots if slot.worker() is not None]
        slot = self.chance.choice(running or list(self.crew.slots))
        return slot, slot.worker()

    async def _able_workers(self) -> set[UUID]:
        """Return the workers that no fault keeps from running jobs, once they are registered."""
        pids = set()
        for slot in self.crew.slots:
            worker = slot.worker()
            is_silent = slot.network is not None and slot.network.is_silent
            if worker is None or is_silent or slot.is_stopping:
                continue
            with contextlib.suppress(psutil.Error):
                if worker.status() != psutil.STATUS_STOPPED:
                    pids.add(worker.pid)
        workers = await retry_until_reachable(lambda: self.session.read_model.workers())
        return {worker.id for worker in workers if worker.pid in pids}

    async def _worker_id(self, worker: psutil.Process) -> str | None:
        """Return the worker's id in the events, or None before it registered."""
        workers = await retry_until_reachable(lambda: self.session.read_model.workers())
        return next((str(known.id) for known in workers if known.pid == worker.pid), None)

    def _note(
        self,
        kind: str,
        *,
        worker: str | None = None,
        job: int | None = None,
        interrupts: bool = True,
    ) -> None:
        self.ledger.faults.append(Fault(kind, time.time(), worker, job, interrupts))
