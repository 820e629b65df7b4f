"""The HTTP endpoint for Slack's requests, which verifies them, and the health endpoints."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from draftsman.formats.received_json import read_object
from draftsman.formats.times import span
from draftsman_bots.process import http
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.transport.acknowledgments import Acknowledgment
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher

# Verification of Slack's request signatures, version v0, over the raw bytes.
#
# The signature is checked before the age, because only a signed request is evidence of clock skew.
# A request that is replayed within five minutes passes: its idempotency key prevents a second job.


MAX_AGE: Final = 300
"""Seconds that a timestamp may differ from the clock."""
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class InvalidSignature(Exception):
    """The request is not verified; `reason` is the label of a counter."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def check(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Raise InvalidSignature unless the secret signed these bytes within five minutes."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    signature = headers.get("x-slack-signature", "")
    if not timestamp or not signature:
        raise InvalidSignature("unsigned", "the request is not signed")
    if not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        raise InvalidSignature("unsigned", "the timestamp or the signature is malformed")
    if not hmac.compare_digest(sign(secret, timestamp, body), signature):
        raise InvalidSignature(
            "signature", "the signature does not match; check that signing_secret is this app's"
        )
    ahead = int(timestamp) - now
    if abs(ahead) > MAX_AGE:
        direction = "ahead of" if ahead > 0 else "behind"
        raise InvalidSignature(
            "clock",
            f"clock skew: a signed request is {span(ahead)} {direction} this machine's clock",
        )


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of these bytes at this Unix time."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


# Parsing of Slack's HTTP bodies: JSON, a form, or JSON in a form.
#
# Bolt's own parser takes every form that contains the word "payload" for an interaction, and so
# drops a slash command about a payload.


MAX_FIELDS: Final = 100
"""Fields of a form at most; a slash command has about fifteen."""


class InvalidBody(ValueError):
    """The body does not match its content type, or is not an object."""


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """Return the payload; raises InvalidBody."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidBody("the body is not UTF-8") from None
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return _object(text)
    if kind == "application/x-www-form-urlencoded":
        return _form(text)
    raise InvalidBody("the content type is neither JSON nor a form")


def _form(text: str) -> dict[str, Any]:
    try:
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InvalidBody("the form has too many fields") from None
    if "command" not in fields and "payload" in fields:
        return _object(fields["payload"])
    if not fields:
        raise InvalidBody("the form is empty")
    return {**fields}


def _object(text: str) -> dict[str, Any]:
    payload = read_object(text, strict=True)
    if payload is None:
        raise InvalidBody("the body is not a JSON object")
    return payload


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
    arrived = asyncio.get_running_loop().time()
    try:
        raw = await http.read_body(request, DEADLINE)
    except http.BodyRejected as error:
        return _reject(health, error.status, error.reason, str(error))
    try:
        check(secret, request.headers, raw, time.time())
    except InvalidSignature as error:
        if error.reason == "clock":
            health.problem(CLOCK, f"{error}; enable NTP on this machine")
        return _reject(health, 401, error.reason, str(error))
    health.clear(CLOCK)
    try:
        payload = parse(raw, request.headers.get("content-type", ""))
    except InvalidBody as error:
        return _reject(health, 400, "malformed", str(error))
    return _response(await bot.answer(payload, arrived=arrived, retry=_retry(request)))


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
