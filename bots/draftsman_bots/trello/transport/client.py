"""Trello's API: py-trello in threads, over an HTTP client of ours.

Whatever goes wrong is a Failure; one of a write that may have been done is InDoubt. Neither holds a
secret, nor the exception of a library.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPMethod
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from trello import TrelloClient

from draftsman.errors import Failure
from draftsman.settings import TrelloSettings
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.transport import api_errors
from draftsman_bots.trello.transport.http_service import HttpService
from draftsman_bots.trello.transport.rate_limit import RateLimiter

Json = Any
T = TypeVar("T")
THREADS: Final = 16
"""Calls at once."""
GRACE: Final = 1.0
"""Seconds after which a call is given up that did not end within its time-out."""


class Trello:
    """One account of Trello."""

    def __init__(
        self, tokens: Credentials, api_url: str, *, timeout: float, pace: RateLimiter
    ) -> None:
        self.trouble: str | None = None
        """Why Trello takes nothing from the bot at all; None while it does."""
        self.timeout = timeout
        self._refusals = 0
        self._tokens = tokens
        self._service = HttpService(tokens, api_url, timeout, pace)
        self._client = TrelloClient(tokens.key, tokens.token, http_service=self._service)
        self._threads = ThreadPoolExecutor(THREADS, "trello")

    async def get(self, path: str, **params: Any) -> Json:
        """Read what is at `/cards/ID`; raises Failure, as the others do."""
        wanted = _listed(params)
        return await self._call(f"GET {path}", lambda: self._fetch(path, HTTPMethod.GET, wanted))

    async def token(self, path: str = "", **params: Any) -> Json:
        """Read what Trello knows of the bot's token, or what is below it: `/webhooks`."""
        wanted, where = _listed(params), f"/tokens/{self._tokens.token}{path}"
        return await self._call(
            f"GET /tokens/…{path}", lambda: self._fetch(where, HTTPMethod.GET, wanted)
        )

    async def post(self, path: str, **fields: Any) -> Json:
        """Make something."""
        return await self._write(HTTPMethod.POST, path, fields)

    async def put(self, path: str, **fields: Any) -> Json:
        """Change something."""
        return await self._write(HTTPMethod.PUT, path, fields)

    async def delete(self, path: str, **fields: Any) -> Json:
        """Remove something."""
        return await self._write(HTTPMethod.DELETE, path, fields)

    async def attach(
        self, card: str, name: str, data: bytes | Path, title: str | None = None
    ) -> Json:
        """Put a file on a card, read as it is sent; people see its title, and save it as `name`."""
        path = f"/cards/{card}/attachments"

        def send() -> Json:
            with BytesIO(data) if isinstance(data, bytes) else data.open("rb") as file:
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                wanted = {"name": title or name, "setCover": "false"}
                return self._client.fetch_json(
                    path, HTTPMethod.POST, query_params=wanted, files={"file": (name, file, kind)}
                )

        return await self._call(f"POST {path}", send, writes=True)

    async def run(self, ask: Callable[[TrelloClient], T]) -> T:
        """Let py-trello do something of several calls; each has its own time-out."""
        loop = asyncio.get_running_loop()
        return self._noticed(await loop.run_in_executor(self._threads, _caught, ask, self._client))

    async def close(self) -> None:
        """Hang up; a call that is under way ends by its time-out."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _write(self, method: HTTPMethod, path: str, fields: Mapping[str, Any]) -> Json:
        return await self._call(
            f"{method} {path}", lambda: self._fetch(path, method, {}, _listed(fields)), writes=True
        )

    def _fetch(
        self,
        path: str,
        method: HTTPMethod,
        query: dict[str, Any],
        body: dict[str, Any] | None = None,
    ) -> Json:
        return self._client.fetch_json(
            quote(path, safe="/"), method, query_params=query, post_args=body or None
        )

    async def _call(self, where: str, send: Callable[[], Json], *, writes: bool = False) -> Json:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.timeout + GRACE):
                run = copy_context().run  # the pace reads whether this is background work
                found = await loop.run_in_executor(self._threads, run, _caught, send)
        except TimeoutError:
            found = api_errors.timed_out(where, "given up", writes=writes)
        return self._noticed(found)

    def _noticed(self, found: T | Failure) -> T:
        if not isinstance(found, Failure):
            self.trouble, self._refusals = None, 0
            return found
        if found.code == api_errors.ACCOUNT:
            self.trouble = f"Trello refuses the bot: {found}"
            found.retry_after = api_errors.PAUSES[min(self._refusals, len(api_errors.PAUSES) - 1)]
            self._refusals += 1
        raise found


def connect(trello: TrelloSettings, tokens: Credentials, *, timeout: float) -> Trello:
    """Return the account of the configuration; one in a process, for it holds the pace.

    `timeout` is in seconds, of one call.
    """
    for name in ("httpx", "httpcore"):  # they tell URLs and headers
        logging.getLogger(name).setLevel(logging.WARNING)
    return Trello(tokens, trello.api_url, timeout=timeout, pace=RateLimiter())


def _caught(call: Callable[..., T], *args: Any) -> T | Failure:
    try:
        return call(*args)
    except Failure as error:
        return error.with_traceback(None)


def _listed(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as Trello takes them: lists with commas, nothing that is None."""
    return {
        name: ",".join(value) if isinstance(value, list | tuple) else value
        for name, value in params.items()
        if value is not None
    }
