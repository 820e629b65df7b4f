"""The HTTP side: Slack's requests, checked before anything reads them, and the bot's health."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import ConfigError
from draftsman_bots.slack import body, signature
from draftsman_bots.slack.bot import DEADLINE, Bot
from draftsman_bots.slack.health import Health
from draftsman_bots.slack.replies import Reply
from draftsman_bots.slack.signature import NotSlacks

PATH: Final = "/slack/events"
"""Where events, interactions, options and commands all come in."""
LARGEST: Final = 1024 * 1024
"""Bytes of a body; Slack's largest are far smaller."""
AT_ONCE: Final = 2000
"""Connections that are answered at the same time; more get 503."""
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
CLOCK: Final = "clock"


def application(bot: Bot | None, secret: str, health: Health) -> Starlette:
    """Return the ASGI application; without a bot it serves its health alone."""

    async def slack(request: Request) -> Response:
        assert bot is not None  # noqa: S101 - there is no route to here without one
        return await _slack(request, bot, secret, health)

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        return JSONResponse(health.as_json(), status_code=200 if health.ready else 503)

    async def metrics(_: Request) -> Response:
        return Response(health.metrics(), media_type=METRICS)

    routes = [Route("/healthz", alive), Route("/readyz", ready), Route("/metrics", metrics)]
    if bot is not None:
        routes.append(Route(PATH, slack, methods=["POST"]))
    return Starlette(routes=routes)


async def _slack(request: Request, bot: Bot, secret: str, health: Health) -> Response:
    try:
        async with asyncio.timeout(DEADLINE):
            raw = await _read(request)
    except TimeoutError:
        return _turned_away(health, 408, "slow", "its body took too long")
    except ClientDisconnect:
        return _turned_away(health, 400, "cut", "it ended before its body did")
    if raw is None:
        return _turned_away(health, 413, "large", f"its body is over {LARGEST} bytes")
    try:
        signature.check(secret, request.headers, raw, time.time())
    except NotSlacks as error:
        if error.reason == "clock":
            health.problem(CLOCK, f"{error}; let this machine follow NTP")
        return _turned_away(health, 401, error.reason, str(error))
    health.clear(CLOCK)
    try:
        payload = body.parse(raw, request.headers.get("content-type", ""))
    except body.Malformed as error:
        return _turned_away(health, 400, "malformed", str(error))
    return _response(await bot.answer(payload, retry=_retry(request)))


async def _read(request: Request) -> bytes | None:
    """Return the body, or None as soon as it is too large, said or not."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:12]) > LARGEST:
        return None
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            return None
        parts.append(part)
    return b"".join(parts)


def _retry(request: Request) -> int:
    said = request.headers.get("x-slack-retry-num", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 5 else 0


def _turned_away(health: Health, status: int, reason: str, text: str) -> Response:
    health.refused(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)


def _response(reply: Reply) -> Response:
    headers = dict(reply.headers)
    if isinstance(reply.body, str):
        text = reply.body.encode("utf-8", "replace")  # a lone surrogate comes back as a ?
        return Response(text, status_code=reply.status, headers=headers, media_type="text/plain")
    return Response(
        reply.text, status_code=reply.status, headers=headers, media_type="application/json"
    )


class Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: the process has one for all its parts."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                limit_concurrency=AT_ONCE,
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


def bind(address: tuple[str, int]) -> socket.socket:
    """Return a socket that listens there; raises ConfigError."""
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"[slack] listen {host}:{port}: {why}; choose another") from None
