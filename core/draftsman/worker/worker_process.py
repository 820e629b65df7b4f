"""A worker process: worker, heartbeat, notification listener, leader and dispatcher."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from draftsman.agent_runs.clones.tree_removal import remove_stale_clones
from draftsman.database.database import Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.errors import DraftsmanError
from draftsman.formats.amounts import counted
from draftsman.handlers.registry import Handler
from draftsman.handlers.run_log import route_standard_streams
from draftsman.ids import worker_name
from draftsman.job_types.published.description import TypeDescription
from draftsman.log import LogEvent, keys
from draftsman.processes import host
from draftsman.processes.components import Component, ComponentGroup
from draftsman.worker.execution import WorkerServices
from draftsman.worker.heartbeat import Heartbeat
from draftsman.worker.leader import Leader
from draftsman.worker.lease_timer import LeaseTimer
from draftsman.worker.registry.service import WorkerRegistration
from draftsman.worker.service.sweeps import Sweeps
from draftsman.worker.worker import Worker

_log = logging.getLogger(__name__)


class WorkerProcess:
    """A worker with its loops; without `sweeps` it does not lead.

    It sends deliveries to `targets`, such as `webhook:team`, and publishes the types that are
    `described`.
    """

    registered = False
    """Whether the worker has its row."""

    def __init__(
        self,
        id: UUID,
        *,
        services: WorkerServices,
        db: Database,
        handlers: Mapping[str, Handler],
        version: str,
        queues: Sequence[str],
        slots: int,
        sweeps: Sweeps | None,
        targets: Sequence[str],
        described: Sequence[TypeDescription],
        dispatcher: Callable[[Callable[[], int | None]], DeliveryDispatcher],
    ) -> None:
        settings = services.settings
        self.id = id
        self._data_dir = settings.data_dir
        self._schemas = services.schemas
        self.worker = Worker(services, handlers, slots)
        self._registration = WorkerRegistration(
            db,
            id,
            version=version,
            types=self.worker.types,
            queues=queues,
            slots=slots,
            targets=targets,
            described=described,
            session=services.claim.heartbeat_session,
        )
        self.listener = NotificationListener(db, self._on_notification, self._registration.hold)
        self.dispatcher = dispatcher(self._lock_number)
        self.heartbeat = Heartbeat(
            self.worker,
            settings.worker,
            register=self._registration.register,
            lock_held=lambda: self.listener.lock_held,
        )
        self.lease_timer = LeaseTimer(self.worker, settings.worker.lease)
        self.leader = None if sweeps is None else Leader(sweeps, settings.sweeps, id)
        helpers: list[Component] = [self.heartbeat, self.lease_timer, self.dispatcher]
        if self.leader is not None:
            helpers.append(self.leader)
        # the listener is the last to stop: its session lock covers deliveries under way
        self._components = ComponentGroup([self.worker], helpers, [self.listener])
        self.stop = self._components.stop

    async def run(self) -> None:
        """Register, work until shutdown, and unregister."""
        await self._registration.register()
        self.registered = True
        if removed := await remove_stale_clones(self._data_dir, self.worker.claim):
            _log.info("removed %s clones of finished runs", removed)
        name = worker_name(self.id)
        types = ", ".join(self.worker.types)
        _log.info(
            "worker %s on %s: %s slots, %s, types %s",
            name,
            host.name(),
            self.worker.slots,
            counted(self.worker.threads.size or self.worker.slots, "thread"),
            types,
            extra=keys(event=LogEvent.WORKER_STARTED),
        )
        try:
            with route_standard_streams():
                await self._components.run()
        finally:
            await self._schemas.close()
            with contextlib.suppress(DraftsmanError):
                await self._registration.leave()
            _log.info("worker %s stopped", name, extra=keys(event=LogEvent.WORKER_STOPPED))

    def _lock_number(self) -> int | None:
        """Return the number of the session lock, None while it is not held."""
        return self._registration.number if self.listener.lock_held else None

    def _on_notification(self, channel: str, payload: str) -> None:
        match channel:
            case "":
                self.worker.wake()
                self.dispatcher.wake()
            case "draftsman_jobs":
                self.worker.wake_one()
            case "draftsman_deliveries":
                self.dispatcher.wake(payload)
            case _ if self.worker.runs(payload):
                self.heartbeat.wake()  # anyone who can connect can notify: the heartbeat checks
