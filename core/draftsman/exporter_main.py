"""Entry point of an exporter: a process with the metrics that are read from the database."""

from __future__ import annotations

import math
from collections.abc import Callable

from pydantic import TypeAdapter, ValidationError

from draftsman.errors import UsageError
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.lifecycle import StopSignal
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.settings.addresses import Listen, address_of
from draftsman.worker.health_server import ExporterHealth, serve_health


async def read_metrics(settings: Settings) -> str:
    """Return the metrics of all jobs, whoever asks; raises DatabaseUnreachable, SchemaOutdated."""
    async with open_runtime(settings, read_only=True, pooled=False) as runtime:
        return await runtime.metrics()


async def run_exporter(settings: Settings, listen: str, started: Callable[[str], None]) -> None:
    """Serve the metrics on `host:port` until a signal; `started` gets their URL.

    Raises UsageError, ConfigError, DatabaseUnreachable, SchemaOutdated.
    """
    deny_inspection()
    host, port = _address(listen)
    async with (
        shutdown_signals() as signals,
        open_runtime(settings, read_only=True) as runtime,
        serve_health(ExporterHealth(runtime.metrics), port, host) as port,
    ):
        started(f"http://{listen.rpartition(':')[0]}:{port}/metrics")
        stop = StopSignal()
        with signals.stopping(stop):
            await stop.wait(math.inf)


def _address(listen: str) -> tuple[str, int]:
    """Split `host:port`; raises UsageError."""
    try:
        address = address_of(TypeAdapter(Listen).validate_python(listen))
    except ValidationError:
        address = None
    if address is None:
        raise UsageError(f"{listen!r} is no address; use host:port, such as 127.0.0.1:9400")
    return address
