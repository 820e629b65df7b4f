"""The HTTP endpoint for Slack's requests, which verifies them, and the health endpoints."""

from __future__ import annotations

import time
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from draftsman_bots.process import http
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.transport import request_body, signature
from draftsman_bots.slack.transport.acknowledgments import Acknowledgment
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher
from draftsman_bots.slack.transport.signature import InvalidSignature

EVENTS_PATH: Final = "/slack/events"
"""The path of events, interactions, options and commands."""
CLOCK: Final = "clock"


def application(
    bot: SlackDispatcher | None, secret: str, health: BotHealth, *, details: bool = True
) -> Starlette:
    """Return the ASGI application; without a bot it has the health endpoints only.

    Without `details`, `/readyz` and `/metrics` are served on another port.
    """
    routes = http.health_routes(health, alone=details)
    if bot is None:
        return Starlette(routes=routes)
    return _Application(routes, bot, secret, health)


class _Application(Starlette):
    """Slack's requests skip the routing and middleware of Starlette, a third of its time."""

    def __init__(
        self, routes: list[Route], bot: SlackDispatcher, secret: str, health: BotHealth
    ) -> None:
        super().__init__(routes=[*routes, Route(EVENTS_PATH, self._slack, methods=["POST"])])
        self._bot = bot
        self._secret = secret
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope.get("path") != EVENTS_PATH or scope.get("method") != "POST":
            await super().__call__(scope, receive, send)
            return
        response = await self._slack(Request(scope, receive))
        await response(scope, receive, send)

    async def _slack(self, request: Request) -> Response:
        return await _slack(request, self._bot, self._secret, self._health)


async def _slack(
    request: Request, bot: SlackDispatcher, secret: str, health: BotHealth
) -> Response:
    try:
        raw = await http.read_body(request, DEADLINE)
    except http.BodyRejected as error:
        return _reject(health, error.status, error.reason, str(error))
    try:
        signature.check(secret, request.headers, raw, time.time())
    except InvalidSignature as error:
        if error.reason == "clock":
            health.problem(CLOCK, f"{error}; enable NTP on this machine")
        return _reject(health, 401, error.reason, str(error))
    health.clear(CLOCK)
    try:
        payload = request_body.parse(raw, request.headers.get("content-type", ""))
    except request_body.InvalidBody as error:
        return _reject(health, 400, "malformed", str(error))
    return _response(await bot.answer(payload, retry=_retry(request)))


def _retry(request: Request) -> int:
    header = request.headers.get("x-slack-retry-num", "")
    return int(header) if header.isascii() and header.isdigit() and len(header) < 5 else 0


def _reject(health: BotHealth, status: int, reason: str, text: str) -> Response:
    health.count_rejected(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)


def _response(reply: Acknowledgment) -> Response:
    headers = dict(reply.headers)
    if isinstance(reply.body, str):
        text = reply.body.encode("utf-8", "replace")  # a lone surrogate becomes "?"
        return Response(text, status_code=reply.status, headers=headers, media_type="text/plain")
    return Response(
        reply.text, status_code=reply.status, headers=headers, media_type="application/json"
    )
