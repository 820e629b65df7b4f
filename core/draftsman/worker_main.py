"""Entry point of a worker process."""

from __future__ import annotations

import logging
import os
from contextlib import AsyncExitStack

from draftsman.database import migrate
from draftsman.handlers import registry
from draftsman.ids import new_id, worker_name
from draftsman.job_types.app import (
    AppPlace,
    descriptions_of,
    handlers_of,
    load_types,
    with_limits,
)
from draftsman.job_types.lifespan import opened_lifespans
from draftsman.job_types.process_runs import ProcessRuns
from draftsman.log import WORKER
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.process_name import PROCESS_NAME
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.worker.health_server import WorkerHealth, serve_health
from draftsman.worker.watchdog import Watchdog

_log = logging.getLogger(__name__)


async def run_worker(
    settings: Settings,
    queues: tuple[str, ...] | None = None,
    slots: int | None = None,
    *,
    leader: bool = True,
    parent: int | None = None,
    health_port: int | None = None,
    app: AppPlace | None = None,
) -> int:
    """Run a worker, with the job types of an app, until a signal; return the exit code.

    The first SIGTERM, SIGINT or SIGHUP drains the worker, or aborts its start; the second exits at
    once. The death of the process `parent` counts as the first signal. A handler that blocks the
    event loop until a lease ends, or goes on after its own, ends the process with code 70.
    The declared resources are open from before its first run until after its last. `health_port` is
    the port of the health endpoints; None: there are none. Raises ConfigError, DatabaseUnreachable,
    SchemaOutdated.
    """
    deny_inspection()
    id = new_id()
    WORKER.set(worker_name(id))
    PROCESS_NAME.set(f"draftsman worker {worker_name(id)}")
    types = load_types(app)
    if types:
        _log.info("job types of %s: %s", app or "installed packages", ", ".join(sorted(types)))
    processes = ProcessRuns(declared.function.__module__ for declared in types.values())
    handlers = registry.load(settings.handlers)
    handlers |= handlers_of(types, settings.handlers, processes)
    settings = with_limits(settings, types)
    health = WorkerHealth()
    async with AsyncExitStack() as stack:
        signals = await stack.enter_async_context(shutdown_signals(parent))
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port))
        await stack.enter_async_context(processes)
        await stack.enter_async_context(opened_lifespans())
        async with open_runtime(settings) as runtime:
            await migrate.warn_of_schema(runtime.db.session_url)
            process = runtime.worker_process(
                handlers,
                id=id,
                queues=queues,
                slots=slots,
                leader=leader,
                described=descriptions_of(types, app),
            )
            health.process = process
            health.read_metrics = runtime.metrics
            health.read_problems = runtime.readiness.problems
            watchdog = Watchdog(
                settings.worker.lease,
                process.worker.names,
                lease_left=process.worker.lease_left,
            )
            with signals.stopping(process.stop), watchdog:
                await process.run()
        if process.worker.running:  # they ignore their cancellation and would block the exit
            _log.error("%s handlers did not stop; exiting anyway", len(process.worker.running))
            os._exit(1)
    return 0
