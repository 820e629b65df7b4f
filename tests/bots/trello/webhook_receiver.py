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

from tests.support.trello import FakeTrello
from tests.support.trello.entities import Json

Listener = Callable[[Json], Awaitable[None]]


@dataclass(frozen=True)
class ReceivedWebhook:
    """What was heard: the body as it came, whether it was signed, and how many were heard then."""

    body: Json
    raw: bytes
    headers: dict[str, str]
    signed: bool
    calls: int
    """Calls that Trello had answered then."""

    @property
    def action(self) -> Json:
        """Return the action."""
        found: Json = self.body["action"]
        return found

    @property
    def kind(self) -> str:
        """Return the type of the action."""
        return str(self.action["type"])


@dataclass
class WebhookReceiver:
    """The callback."""

    trello: FakeTrello
    url: str = ""
    heard: list[ReceivedWebhook] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """What is answered to the next ones; 200 after that."""
    head: int = 200
    heads: int = 0
    silent: asyncio.Event | None = None
    """What a POST waits for before it is answered."""
    _listener: Listener | None = None

    def listen(self, listener: Listener) -> None:
        """Let somebody hear every action too, before it is answered."""
        self._listener = listener

    async def serve(self, request: web.Request) -> web.Response:
        """Answer."""
        if request.method == "HEAD":
            self.heads += 1
            moved = {"Location": f"{self.url}/moved"} if self.head == 302 else {}
            return web.Response(status=self.head, headers=moved)
        raw = await request.read()
        said = raw + self.url.encode()
        digest = hmac.new(self.trello.secret.encode(), said, hashlib.sha1).digest()
        signed = request.headers["X-Trello-Webhook"] == base64.b64encode(digest).decode()
        calls = len(self.trello.calls)
        self.heard.append(
            ReceivedWebhook(json.loads(raw), raw, dict(request.headers), signed, calls)
        )
        if self._listener is not None:
            await self._listener(self.heard[-1].action)
        if self.silent is not None:
            await self.silent.wait()
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    @property
    def kinds(self) -> list[str]:
        """Return the types of what was heard."""
        return [one.kind for one in self.heard]


@asynccontextmanager
async def receive_webhooks(trello: FakeTrello) -> AsyncIterator[WebhookReceiver]:
    """Listen on a free port."""
    ears = WebhookReceiver(trello)
    app = web.Application()
    app.router.add_route("*", "/hook", ears.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ears.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield ears
    finally:
        await runner.cleanup()
