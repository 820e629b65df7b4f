"""The health endpoints of a worker or an exporter: `/healthz`, `/readyz`, and `/metrics`.

A worker that cannot reach its database is alive, and a restart does not help: only readiness fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Protocol

from draftsman.errors import ConfigError, DraftsmanError
from draftsman.ids import worker_name
from draftsman.metrics import Counter, Gauge, process_metrics
from draftsman.worker.worker_process import WorkerProcess

MAX_HEAD_BYTES: Final = 8192
REQUEST_TIMEOUT: Final = 5.0
"""Seconds for a complete request, and for its response."""
READ_TIMEOUT: Final = 3.0
"""Seconds to read the figures; shorter, so that an unreachable database gives a response."""
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of text, and of the format of Prometheus."""
MAX_CONNECTIONS: Final = 100
"""Concurrent connections; further connections are closed."""
EXCHANGE_AGE: Final = Gauge(
    "worker_exchange_age_seconds", "Age of the last successful exchange with the database."
)
UNSETTLED: Final = Gauge("worker_unsettled", "Ended runs whose end the database refuses.")
SLOTS: Final = Gauge("worker_slots", "Maximum number of concurrent runs of this worker.")
RUNS: Final = Gauge("worker_runs", "Runs of this worker.")
THREADS: Final = Gauge("worker_threads", "Maximum number of concurrent threads of runs.")
THREADS_RUNNING: Final = Gauge("worker_threads_running", "Threads of runs.")
THREADS_WAITING: Final = Gauge("worker_threads_waiting", "Runs that wait for a thread.")
SWEEP_REFUSED: Final = Gauge(
    "sweep_refused",
    "Rows that the database refuses to the sweeps of this worker, as the leader: they are set aside"
    " and tried again.",
    ("sweep",),
)
HEARTBEAT_AGE: Final = Gauge(
    "worker_heartbeat_age_seconds", "Age of the last successful heartbeat of this worker."
)
SWEPT_AT: Final = Gauge(
    "sweep_last_success_timestamp_seconds",
    "Unix time at which a sweep of this worker last succeeded, as the leader.",
    ("sweep",),
)
SETTLEMENTS: Final = Counter(
    "worker_settlements_total", "Ends of runs that the worker sent with its claims."
)
SKIPPED: Final = Counter(
    "worker_settlements_skipped_total",
    "Ends of runs that were left for the next claim, as another transaction had locked the job, or"
    " dropped, as the lease was lost.",
)
_log = logging.getLogger(__name__)


class HealthSource(Protocol):
    """The health of a process, as the endpoints read it."""

    async def readiness(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""

    async def metrics(self) -> str | None:
        """Return the body of `/metrics`; None while the database is unavailable."""


class WorkerHealth:
    """The health of the worker of this process."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        """The worker, once it exists."""
        self.read_metrics: Callable[[], Awaitable[str]] | None = None
        """Reads the metrics of the database, once it is connected."""
        self.read_problems: Callable[[], Awaitable[dict[str, str]]] | None = None
        """Reads the problems of the database and the disk, once the former is connected."""

    def problems(self) -> dict[str, str]:
        """Return the reasons why the worker is not ready, by key."""
        process = self.process
        if process is None or not process.registered:
            return {"worker": "starting"}
        if process.worker.stop:
            return {"worker": "draining"}
        if process.heartbeat.unavailable:
            return {"database": f"no heartbeat for {process.heartbeat.silence:.0f} s"}
        if process.worker.is_stalled:
            return {"claims": f"no exchange for {process.worker.silence:.0f} s"}
        return {}

    async def readiness(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""
        found = {} if self.read_problems is None else await self.read_problems()
        return self.as_json(found)

    def as_json(self, found: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """Return the body of `/readyz`, with problems that were found outside the worker."""
        problems = {**found, **self.problems()}
        body: dict[str, Any] = {"ready": not problems, "problems": problems}
        if self.process is not None:
            worker = self.process.worker
            body |= {"worker": worker_name(self.process.id), "slots": worker.slots}
            body |= {"runs": len(worker.running), "unsettled": worker.unsettled}
            threads = worker.threads
            body["threads"] = {
                "limit": threads.size or worker.slots,
                "running": threads.running,
                "waiting": threads.waiting,
            }
            body["exchange_age"] = round(worker.silence, 1)
        return body

    async def metrics(self) -> str | None:
        """Return the body of `/metrics`; None while the database is unavailable."""
        if self.process is None or self.read_metrics is None:
            return None
        worker = self.process.worker
        leader = self.process.leader
        refused = {} if leader is None else leader.refused
        swept = {} if leader is None else leader.swept
        measured = [
            HEARTBEAT_AGE.render_value(round(self.process.heartbeat.silence, 1)),
            EXCHANGE_AGE.render_value(round(worker.silence, 1)),
            UNSETTLED.render_value(worker.unsettled),
            SLOTS.render_value(worker.slots),
            RUNS.render_value(len(worker.running)),
            THREADS.render_value(worker.threads.size or worker.slots),
            THREADS_RUNNING.render_value(worker.threads.running),
            THREADS_WAITING.render_value(worker.threads.waiting),
            SWEEP_REFUSED.render([({"sweep": sweep}, rows) for sweep, rows in refused.items()]),
            SWEPT_AT.render([({"sweep": sweep}, at) for sweep, at in swept.items()]),
            SETTLEMENTS.render_value(worker.settlements),
            SKIPPED.render_value(worker.skipped_settlements),
            process_metrics(),
        ]
        read = await read_in_time(self.read_metrics)
        return None if read is None else "".join([*measured, read])


class ExporterHealth:
    """The health of an exporter, a process that only has the metrics of the database."""

    def __init__(self, read_metrics: Callable[[], Awaitable[str]]) -> None:
        self._read_metrics = read_metrics

    async def readiness(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""
        problems = {} if await self.metrics() is not None else {"database": "no reply"}
        return {"ready": not problems, "problems": problems}

    async def metrics(self) -> str | None:
        """Return the body of `/metrics`; None while the database is unavailable."""
        return await read_in_time(self._read_metrics)


async def read_in_time(read: Callable[[], Awaitable[str]]) -> str | None:
    """Return the metrics of the database; None while it is unavailable."""
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            return await read()
    except (TimeoutError, DraftsmanError) as error:
        _log.debug("no metrics: %s", str(error) or "timeout")
        return None


@asynccontextmanager
async def serve_health(
    health: HealthSource, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serve the endpoints on an address, or on all; yield the port, which is chosen for port 0.

    Raises ConfigError if the address cannot be used.
    """
    endpoints = _Endpoints(health)
    server = await asyncio.start_server(
        endpoints.respond, sock=_bind(port, host), limit=MAX_HEAD_BYTES, backlog=MAX_CONNECTIONS
    )
    port = server.sockets[0].getsockname()[1]
    _log.info("health endpoints on port %s", port)
    try:
        yield port
    finally:
        server.close()


class _Endpoints:
    """Responses to requests, each on a connection of its own."""

    def __init__(self, health: HealthSource) -> None:
        self._health = health
        self._open = 0

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to a request and close the connection."""
        self._open += 1
        try:
            if self._open <= MAX_CONNECTIONS:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    writer.write(await self._response(reader))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # the client is slow or gone
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _http(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "")
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in {"GET", "HEAD"}:
            return _http(HTTPStatus.METHOD_NOT_ALLOWED, "")
        status, text = await self._answer(path)
        return _http(status, text, with_body=method == "GET")

    async def _answer(self, path: str) -> tuple[HTTPStatus, str]:
        match path:
            case "/metrics":
                metrics = await self._health.metrics()
                if metrics is None:
                    return HTTPStatus.SERVICE_UNAVAILABLE, "no metrics: see /readyz\n"
                return HTTPStatus.OK, metrics
            case "/healthz":
                return HTTPStatus.OK, "alive\n"
            case "/readyz":
                body = await self._health.readiness()
                status = HTTPStatus.OK if body["ready"] else HTTPStatus.SERVICE_UNAVAILABLE
                return status, json.dumps(body) + "\n"
        return HTTPStatus.NOT_FOUND, "use /healthz, /readyz or /metrics\n"


def _http(status: HTTPStatus, text: str, *, with_body: bool = True) -> bytes:
    kind = "application/json" if text.startswith("{") else TEXT
    body = text.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")


def _bind(port: int, host: str | None) -> socket.socket:
    """Return a listening socket on an address, or on all, of IPv6 too if the system has it."""
    try:
        if host is not None:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family)
        if socket.has_dualstack_ipv6():
            with contextlib.suppress(OSError):
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        address = f"health port {port}" if host is None else f"{host}:{port}"
        raise ConfigError(f"{address}: {error.strerror}; use another port") from None
