"""The HTTP server of the bots, without signal handlers, and its health endpoints."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import ConfigError
from draftsman.metrics import process_metrics
from draftsman.processes.lifecycle import StopSignal
from draftsman_bots.process.http_protocols import MAX_HEAD_BYTES, PROTOCOLS

MAX_BODY_BYTES: Final = 1024 * 1024
"""The chats send far smaller bodies."""
MAX_CONCURRENCY: Final = 2000
"""Concurrent connections; further requests get 503."""
_log = logging.getLogger(__name__)
METRICS_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthSource(Protocol):
    """The health of a bot, as the endpoints read it."""

    @property
    def ready(self) -> bool:
        """Whether there is no problem."""

    async def look(self) -> None:
        """Find the problems of this moment."""

    def as_json(self) -> dict[str, Any]:
        """Return the body of `/readyz`."""

    def metrics(self) -> bytes:
        """Return the body of `/metrics`."""


def health_application(health: HealthSource) -> Starlette:
    """Return an ASGI application with the health endpoints only."""
    return Starlette(routes=health_routes(health))


def health_routes(health: HealthSource, *, alone: bool = True) -> list[Route]:
    """Return the health endpoints; without `alone`, `/healthz` only."""

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        await health.look()
        return JSONResponse(health.as_json(), status_code=200 if health.ready else 503)

    async def metrics(_: Request) -> Response:
        await health.look()
        body = health.metrics() + process_metrics().encode()
        return Response(body, media_type=METRICS_CONTENT_TYPE)

    details = [Route("/readyz", ready), Route("/metrics", metrics)]
    return [Route("/healthz", alive), *(details if alone else ())]


class BodyRejected(Exception):
    """A request body that cannot be read: its HTTP status, and the reason for a counter."""

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason


async def read_body(request: Request, timeout: float) -> bytes:
    """Return the body; raises BodyRejected if it is late, incomplete or too large."""
    try:
        async with asyncio.timeout(timeout):
            body = await _read_body(request)
    except TimeoutError:
        raise BodyRejected(408, "slow", "the body took too long to arrive") from None
    except ClientDisconnect:
        raise BodyRejected(
            400, "cut", "the client disconnected before the body was complete"
        ) from None
    if body is None:
        raise BodyRejected(413, "large", f"the body exceeds {MAX_BODY_BYTES} bytes")
    return body


async def _read_body(request: Request) -> bytes | None:
    """Return the body, or None once it is too large, whatever its content-length."""
    content_length = request.headers.get("content-length", "")
    if (
        content_length.isascii()
        and content_length.isdigit()
        and int(content_length[:12]) > MAX_BODY_BYTES
    ):
        return None
    chunks = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


class HttpServer:
    """An HTTP server as a component; stopped, it finishes the requests in progress."""

    def __init__(self, app: Starlette, listener: socket.socket) -> None:
        self.stop = StopSignal(self._exit)
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._server = _Server(app)

    async def run(self) -> None:
        """Serve until stopped."""
        await self._server.serve([self._listener])

    def _exit(self) -> None:
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers, because the process handles signals for all components."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PROTOCOLS[-1],
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MAX_CONCURRENCY,
                timeout_graceful_shutdown=5,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers unchanged."""
        yield


def serve(
    app: Starlette, address: tuple[str, int], section: str, key: str = "listen"
) -> HttpServer:
    """Return a server that listens on an address; raises ConfigError that names the setting."""
    server = HttpServer(app, bind(address, section, key))
    _log.info("serving HTTP on %s:%s", address[0], server.port)
    return server


def serve_health(
    health: HealthSource, addresses: Mapping[str, tuple[str, int] | None]
) -> Iterator[HttpServer]:
    """Yield a server of the health endpoints for each `health_listen` of sections, as `serve`."""
    sections: dict[tuple[str, int], str] = {}
    for section, address in addresses.items():
        if address is not None:
            sections.setdefault(address, section)
    for address, section in sections.items():
        yield serve(health_application(health), address, section, "health_listen")


def bind(address: tuple[str, int], section: str, key: str = "listen") -> socket.socket:
    """Return a listening socket; raises ConfigError that names the setting in `[section]`."""
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise ConfigError(
            f"[{section}] {key} {host}:{port}: {reason}; choose another address"
        ) from None
