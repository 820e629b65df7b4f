"""What one worker process consists of: worker, heart, ear, leader and dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from draftsman import host
from draftsman.domain.ids import worker_name
from draftsman.errors import DatabaseUnreachable
from draftsman.handlers.leftovers import remove_leftovers
from draftsman.handlers.prints import routed
from draftsman.handlers.registry import Handler
from draftsman.log import LogEvent, keys
from draftsman.loops.dispatcher import Dispatcher
from draftsman.loops.ear import Ear
from draftsman.loops.heart import Heart
from draftsman.loops.leader import Leader
from draftsman.loops.run import Bench
from draftsman.loops.worker import Worker
from draftsman.services.presence import Presence
from draftsman.services.sweep import Sweeps
from draftsman.store.db import Database

_log = logging.getLogger(__name__)


class Crew:
    """One worker with everything that it needs around it; without `sweeps` it does not lead."""

    def __init__(
        self,
        id: UUID,
        bench: Bench,
        db: Database,
        handlers: Mapping[str, Handler],
        *,
        version: str,
        queues: Sequence[str],
        slots: int,
        sweeps: Sweeps | None,
        dispatcher: Callable[[Callable[[], int | None]], Dispatcher],
    ) -> None:
        settings = bench.settings
        self.id = id
        self._data_dir = settings.data_dir
        self._schemas = bench.schemas
        self.worker = Worker(bench, handlers, slots)
        self._presence = Presence(
            db,
            id,
            version=version,
            types=self.worker.types,
            queues=queues,
            slots=slots,
            line=bench.claim.beats,
        )
        listen = settings.listen_url.get_secret_value() if settings.listen_url else None
        self.ear = Ear(db, listen, self._hear, self._presence.hold)
        self.dispatcher = dispatcher(self._sender)
        self.heart = Heart(
            self.worker, settings.worker, self._presence.register, lambda: self.ear.holding
        )
        self.leader = None if sweeps is None else Leader(sweeps, settings.sweeps, id)

    async def run(self) -> None:
        """Register, work until shut down, and leave."""
        await self._presence.register()
        if gone := await remove_leftovers(self._data_dir, self.worker.claim):
            _log.info("%s clones of runs that are over were removed", gone)
        name, types = worker_name(self.id), ", ".join(self.worker.types)
        _log.info(
            "worker %s on %s: %s slots, types %s",
            name,
            host.name(),
            self.worker.slots,
            types,
            extra=keys(event=LogEvent.WORKER_STARTED),
        )
        parts = (self.heart, self.ear, self.leader, self.dispatcher)
        others = [part for part in parts if part is not None]
        tasks = [asyncio.create_task(part.run(), name=type(part).__name__) for part in others]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        try:
            with routed():
                await self.worker.run()
        finally:
            for part in others:
                if part is not self.ear:
                    part.stop.set()
            hearing = tasks[others.index(self.ear)]
            await asyncio.gather(
                *(task for task in tasks if task is not hearing), return_exceptions=True
            )
            self.ear.stop.set()  # last: its session speaks for what is being sent
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            await self._schemas.close()
            with contextlib.suppress(DatabaseUnreachable):
                await self._presence.leave()
        _log.info("worker %s stopped", name, extra=keys(event=LogEvent.WORKER_STOPPED))
        if broken := [end for end in ends if isinstance(end, Exception)]:
            raise broken[0]

    def _sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._presence.number if self.ear.holding else None

    def _hear(self, channel: str, payload: str) -> None:
        match channel:
            case "":
                self.worker.wake()
                self.dispatcher.wake()
            case "draftsman_jobs":
                self.worker.tell()
            case "draftsman_deliveries":
                self.dispatcher.wake(payload)
            case _ if self.worker.runs(payload):
                self.heart.wake()  # anyone who can connect can notify: the heartbeat asks

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """Stop the worker when a part of it broke: without a heart its runs would be lost."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s broke: %s", task.get_name(), error)
            self.worker.stop.set()
            self.worker.wake()

    def shut_down(self, why: str) -> None:
        """Drain on the first call; exit at once on the second."""
        if self.worker.stop:
            _log.warning("%s again: exiting now", why)
            os._exit(1)
        _log.info("%s: stopping", why)
        self.worker.stop.set()
        self.worker.wake()
