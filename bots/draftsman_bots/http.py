"""The HTTP side that bots share: a server without signal handlers, its address, and health."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Coroutine, Iterator
from typing import Any, Final, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import ConfigError
from draftsman_bots.http_protocol import MAX_HEAD_BYTES, TimedProtocol

MAX_BODY_BYTES: Final = 1024 * 1024
"""Bytes of a body; the largest that chats send are far smaller."""
MAX_CONCURRENCY: Final = 2000
"""Connections that are answered at the same time; more get 503."""
_log = logging.getLogger(__name__)
METRICS_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthSource(Protocol):
    """How a bot is."""

    @property
    def ready(self) -> bool:
        """Whether nothing is wrong."""

    def as_json(self) -> dict[str, Any]:
        """Return what `/readyz` shows."""

    def metrics(self) -> bytes:
        """Return what `/metrics` shows."""


def health_application(health: HealthSource) -> Starlette:
    """Return the ASGI application of a port that serves nothing but health."""
    return Starlette(routes=health_routes(health))


def health_routes(health: HealthSource, *, alone: bool = True) -> list[Route]:
    """Return what tells how a bot is; without `alone`, details are served on another port."""

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        return JSONResponse(health.as_json(), status_code=200 if health.ready else 503)

    async def metrics(_: Request) -> Response:
        return Response(health.metrics(), media_type=METRICS_CONTENT_TYPE)

    details = [Route("/readyz", ready), Route("/metrics", metrics)]
    return [Route("/healthz", alive), *(details if alone else ())]


async def read_body(request: Request) -> bytes | None:
    """Return the body, or None as soon as it is too large, said or not."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:12]) > MAX_BODY_BYTES:
        return None
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


class Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: the process has one for all its parts."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=TimedProtocol,
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
        """Leave signals alone."""
        yield

    def end(self) -> None:
        """Finish what is being answered, and end."""
        self.should_exit = True


def serve(
    app: Starlette, address: tuple[str, int], section: str, key: str = "listen"
) -> tuple[Server, Coroutine[Any, Any, None], int]:
    """Return a server, what runs it, and its port; raises ConfigError that names the setting."""
    served = bind(address, section, key)
    port: int = served.getsockname()[1]
    server = Server(app)
    _log.info("serving HTTP on %s:%s", address[0], port)
    return server, server.serve([served]), port


def bind(address: tuple[str, int], section: str, key: str = "listen") -> socket.socket:
    """Return a socket that listens there; raises ConfigError that names the `[section]`."""
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"[{section}] {key} {host}:{port}: {why}; choose another address"
        ) from None
