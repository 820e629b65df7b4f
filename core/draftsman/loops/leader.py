"""The leader: the one worker that sweeps.

Leases cannot exclude two leaders, so two do no harm: each sweep's statement proves the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from draftsman.errors import DraftsmanError
from draftsman.log import LogEvent, keys
from draftsman.loops.lifecycle import OutageGuard, StopSignal
from draftsman.services.maintenance.sweeps import INTERVALS, Sweeps
from draftsman.settings import SweepSettings
from draftsman.store.sweeps import LeaderTerm

TICK: Final = 1.0
"""Seconds between two looks for what is due next, at most, and for local workers that died."""
LEASE_SAFETY: Final = 0.8
"""Part of its time after which a lease that could not be renewed is given up."""
logging.getLogger("apscheduler").setLevel(logging.ERROR)
_log = logging.getLogger(__name__)


class Leader:
    """Stands for leader all the time, and leads while it holds the lease."""

    def __init__(self, sweeps: Sweeps, settings: SweepSettings, owner: UUID) -> None:
        self.stop = StopSignal()
        self._sweeps = sweeps
        self._settings = settings
        self._owner = owner
        self._term: int | None = None
        self._outage = OutageGuard("the leader")

    async def run(self) -> None:
        """Stand and lead until stopped; resign then."""
        while not self.stop:
            await self._outage.guard(self._stand)
            if self._term is not None:
                await self._lead(LeaderTerm(self._owner, self._term))
                self._term = None
            await self.stop.wait(min(TICK * 2, self._settings.lease / 2))

    async def _stand(self) -> None:
        self._term = await self._sweeps.acquire(self._owner, self._settings.lease)

    async def _lead(self, term: LeaderTerm) -> None:
        _log.info("leading, term %s", term.term, extra=keys(event=LogEvent.LEADER_STARTED))
        scheduler = AsyncIOScheduler(timezone="UTC")
        for name in self._sweeps.names:
            scheduler.add_job(
                self._scheduled,
                "interval",
                args=(name, term),
                seconds=max(self._settings.interval, INTERVALS.get(name, 0)),
                max_instances=1,
                coalesce=True,
                id=name,
                **({"next_run_time": datetime.now(UTC)} if name in INTERVALS else {}),
            )
        scheduler.start()
        works = (self._keep(term), self._watch(term), self._begin(term))
        parts = {asyncio.create_task(work) for work in works}
        try:
            ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*ended)
        finally:
            for part in parts:
                part.cancel()
            scheduler.pause()
            # what it started just now begins meanwhile: cancelled before, it would be an error
            await asyncio.gather(*parts, return_exceptions=True)
            scheduler.shutdown(wait=False)
            await self._outage.guard(lambda: self._sweeps.resign(term))
            stopped = keys(event=LogEvent.LEADER_STOPPED)
            _log.info("no longer leading, term %s", term.term, extra=stopped)

    async def _keep(self, term: LeaderTerm) -> None:
        """Renew at half of the lease; return when it is lost, doubtful, or we stop."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while not await self.stop.wait(self._settings.lease / 2):
            asked = loop.time()
            try:
                if not await self._sweeps.renew(term, self._settings.lease):
                    return
                renewed = asked
            except DraftsmanError as error:
                _log.warning("the lease was not renewed: %s", error)
                if loop.time() - renewed > self._settings.lease * LEASE_SAFETY:
                    return

    async def _begin(self, term: LeaderTerm) -> None:
        """Sweep once, one after the other; the scheduler goes on, until we are cancelled."""
        for name in (name for name in self._sweeps.names if name not in INTERVALS):
            await self._sweep(name, term)
        await self.stop.wait(math.inf)

    async def _watch(self, term: LeaderTerm) -> None:
        """Promote, expire, remind and notify to the second; take over from local dead workers."""
        while True:
            due = None
            try:
                if await self._sweeps.has_dead_local_workers():
                    await self._sweep("rescue", term)
                    await self._sweep("reap", term)
                due = await self._sweeps.next_due()
                if due is not None and due <= 0:
                    await self._sweep("promote", term)
                    await self._sweep("expire", term)
                    await self._sweep("remind", term)
                    await self._sweep("notify", term)
            except DraftsmanError as error:
                _log.debug("the timer waits for the database: %s", error)
            await asyncio.sleep(TICK if due is None else min(TICK, max(0.1, due)))

    async def _scheduled(self, name: str, term: LeaderTerm) -> None:
        """Sweep for the scheduler, which would log it as an error that we ended it ourselves."""
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweep(name, term)

    async def _sweep(self, name: str, term: LeaderTerm) -> None:
        try:
            changed = await self._sweeps.names[name](term)
        except DraftsmanError as error:
            _log.warning("sweep %s failed: %s", name, error)
            return
        if changed:
            _log.info("sweep %s: %s rows", name, changed)
