"""The web inbox over real HTTP, and browsers of people."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any
from urllib.parse import urlencode

import httpx

from draftsman.people.actor import Actor
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.runtime import Runtime, wire
from draftsman_bots.web.service import WebService
from draftsman_bots.web.settings import WebSettings

ORIGIN = "http://localhost"


class Visitor:
    """A browser: its cookies, its last page, and the forms on it."""

    def __init__(self, port: int, origin: str = ORIGIN) -> None:
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"host": origin.partition("://")[2], "user-agent": "test browser"},
        )
        self.origin = origin

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Open a page."""
        return await self.http.get(path, headers=headers)

    async def post(
        self, path: str, fields: dict[str, str], *, origin: str | None = "", **headers: str
    ) -> httpx.Response:
        """Send a form; `origin`: of the page that has it, by default that of the inbox."""
        if origin is not None:
            headers["origin"] = origin or self.origin
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
        return await self.http.post(path, content=urlencode(fields), headers=headers)

    async def hidden(self, path: str) -> dict[str, str]:
        """Return the hidden fields of the last form of a page that is sent."""
        page = await self.get(path)
        assert page.status_code == 200, page.text
        form = page.text[page.text.rindex('method="post"') :]
        pairs = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
        return {name: unescape(value) for name, value in pairs}

    async def answer(self, path: str, **fields: str) -> httpx.Response:
        """Open a question and send its form."""
        return await self.post(path, {**await self.hidden(path), **fields})

    async def sign_in(self, sessions: BrowserSessions, actor: Actor) -> Visitor:
        """Sign in with a new link."""
        token, _ = await sessions.create_link(actor)
        response = await self.post(f"/sign-in/{token}", {})
        assert response.status_code == 303, response.text
        return self


class Inbox:
    """A running server."""

    def __init__(self, service: WebService, port: int) -> None:
        self.service = service
        self.port = port
        self.sessions = service.context.sessions
        self._visitors: list[Visitor] = []

    def visitor(self) -> Visitor:
        """Return a new browser."""
        self._visitors.append(Visitor(self.port, self.service.context.settings.origin))
        return self._visitors[-1]

    async def visit(self, actor: Actor) -> Visitor:
        """Return a new browser in which a person is signed in."""
        return await self.visitor().sign_in(self.sessions, actor)

    async def close(self) -> None:
        """Close all browsers."""
        for visitor in self._visitors:
            await visitor.http.aclose()


@asynccontextmanager
async def serving(rt: Runtime, **web: Any) -> AsyncIterator[Inbox]:
    """Serve the inbox with these settings, and an undo window of `undo` seconds."""
    undo = web.pop("undo", 0)
    settings = WebSettings.model_validate({"listen": "127.0.0.1:0", "url": ORIGIN} | web)
    questions = rt.settings.questions.model_copy(update={"undo": undo})
    changed = {"web": settings, "questions": questions}
    own = wire(rt.settings.model_copy(update=changed), rt.db, rt.embedded)
    own.policy.update_from(rt.policy)
    service = WebService(own)
    task = asyncio.create_task(service.run())
    inbox = Inbox(service, service.port)
    try:
        yield inbox
    finally:
        await inbox.close()
        service.stop.set()
        await task
        await own.schemas.close()
