"""Webhook receiver that verifies signatures and returns configured responses."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.entities import Json

Listener = Callable[[Json], Awaitable[None]]


@dataclass(frozen=True)
class ReceivedWebhook:
    """A received webhook: its body, and whether its signature is valid."""

    body: Json
    raw: bytes
    headers: dict[str, str]
    signed: bool
    calls: int
    """Number of API calls that Trello had answered before."""

    @property
    def action(self) -> Json:
        """Return the action."""
        action: Json = self.body["action"]
        return action

    @property
    def kind(self) -> str:
        """Return the type of the action."""
        return str(self.action["type"])


@dataclass
class WebhookReceiver:
    """The callback of webhooks."""

    trello: FakeTrello
    url: str = ""
    received: list[ReceivedWebhook] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next responses; 200 after them."""
    head: int = 200
    heads: int = 0
    silent: asyncio.Event | None = None
    """Event for which a POST waits before its response."""
    _listener: Listener | None = None

    def listen(self, listener: Listener) -> None:
        """Call a function for each action before the response."""
        self._listener = listener

    async def serve(self, request: web.Request) -> web.Response:
        """Respond to a request."""
        if request.method == "HEAD":
            self.heads += 1
            moved = {"Location": f"{self.url}/moved"} if self.head == 302 else {}
            return web.Response(status=self.head, headers=moved)
        raw = await request.read()
        signed_bytes = raw + self.url.encode()
        digest = hmac.new(self.trello.secret.encode(), signed_bytes, hashlib.sha1).digest()
        signed = request.headers["X-Trello-Webhook"] == base64.b64encode(digest).decode()
        calls = len(self.trello.calls)
        self.received.append(
            ReceivedWebhook(json.loads(raw), raw, dict(request.headers), signed, calls)
        )
        if self._listener is not None:
            await self._listener(self.received[-1].action)
        if self.silent is not None:
            await self.silent.wait()
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    @property
    def kinds(self) -> list[str]:
        """Return the types of the received actions."""
        return [webhook.kind for webhook in self.received]


@asynccontextmanager
async def receive_webhooks(trello: FakeTrello) -> AsyncIterator[WebhookReceiver]:
    """Serve a receiver on a free port."""
    receiver = WebhookReceiver(trello)
    app = web.Application()
    app.router.add_route("*", "/hook", receiver.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
