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
from draftsman.handlers.clone.clone_cleanup import remove_stale_clones
from draftsman.handlers.print_capture import route_standard_streams
from draftsman.handlers.registry import Handler
from draftsman.log import LogEvent, keys
from draftsman.loops.delivery_dispatcher import DeliveryDispatcher
from draftsman.loops.execution import WorkerServices
from draftsman.loops.heartbeat import Heartbeat
from draftsman.loops.leader import Leader
from draftsman.loops.notification_listener import NotificationListener
from draftsman.loops.worker import Worker
from draftsman.services.maintenance.sweeps import Sweeps
from draftsman.services.runs.worker_registry import WorkerRegistration
from draftsman.store.postgres.database import Database

_log = logging.getLogger(__name__)


class WorkerProcess:
    """One worker with everything that it needs around it; without `sweeps` it does not lead."""

    def __init__(
        self,
        id: UUID,
        bench: WorkerServices,
        db: Database,
        handlers: Mapping[str, Handler],
        *,
        version: str,
        queues: Sequence[str],
        slots: int,
        sweeps: Sweeps | None,
        dispatcher: Callable[[Callable[[], int | None]], DeliveryDispatcher],
    ) -> None:
        settings = bench.settings
        self.id = id
        self._data_dir = settings.data_dir
        self._schemas = bench.schemas
        self.worker = Worker(bench, handlers, slots)
        self._presence = WorkerRegistration(
            db,
            id,
            version=version,
            types=self.worker.types,
            queues=queues,
            slots=slots,
            line=bench.claim.heartbeat_session,
        )
        listen = settings.listen_url.get_secret_value() if settings.listen_url else None
        self.listener = NotificationListener(db, listen, self._hear, self._presence.hold)
        self.dispatcher = dispatcher(self._sender)
        self.heartbeat = Heartbeat(
            self.worker, settings.worker, self._presence.register, lambda: self.listener.lock_held
        )
        self.leader = None if sweeps is None else Leader(sweeps, settings.sweeps, id)

    async def run(self) -> None:
        """Register, work until shut down, and leave."""
        await self._presence.register()
        if gone := await remove_stale_clones(self._data_dir, self.worker.claim):
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
        parts = (self.heartbeat, self.listener, self.leader, self.dispatcher)
        others = [part for part in parts if part is not None]
        tasks = [asyncio.create_task(part.run(), name=type(part).__name__) for part in others]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        try:
            with route_standard_streams():
                await self.worker.run()
        finally:
            for part in others:
                if part is not self.listener:
                    part.stop.set()
            hearing = tasks[others.index(self.listener)]
            await asyncio.gather(
                *(task for task in tasks if task is not hearing), return_exceptions=True
            )
            self.listener.stop.set()  # last: its session speaks for what is being sent
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            await self._schemas.close()
            with contextlib.suppress(DatabaseUnreachable):
                await self._presence.leave()
        _log.info("worker %s stopped", name, extra=keys(event=LogEvent.WORKER_STOPPED))
        if broken := [end for end in ends if isinstance(end, Exception)]:
            raise broken[0]

    def _sender(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._presence.number if self.listener.lock_held else None

    def _hear(self, channel: str, payload: str) -> None:
        match channel:
            case "":
                self.worker.wake()
                self.dispatcher.wake()
            case "draftsman_jobs":
                self.worker.wake_one()
            case "draftsman_deliveries":
                self.dispatcher.wake(payload)
            case _ if self.worker.runs(payload):
                self.heartbeat.wake()  # anyone who can connect can notify: the heartbeat asks

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
