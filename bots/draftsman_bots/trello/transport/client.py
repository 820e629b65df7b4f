"""Asynchronous Trello API client: py-trello in threads, over our HTTP service.

Boards, cards, lists and labels are py-trello objects, whose methods `read` and `write` call where
a single request suffices and its reply has all the data. The other requests use `fetch_json`:

- Cards: see `transport/cards.py` and `requests/card_ticket.py`.
- A list with its board: `List` does not keep `idBoard`.
- Attachments: `Card.attach` gives a file no title other than its name.
- Webhooks: `WebHook` lacks the failures, and `create_hook` puts the token into the URL.
- Members, memberships, the token and a single comment: py-trello needs the member's email address,
  or has no method.

Every error is a Failure; for a write that may have been applied, an UnconfirmedCall. Neither
contains a secret or a library's exception.
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
from typing import Any, Final, ParamSpec, Self, TypeVar
from urllib.parse import quote

from trello import Board, Card, Label, TrelloClient

from draftsman.errors import Failure
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_bots.trello.transport import api_errors
from draftsman_bots.trello.transport.http_service import HttpService
from draftsman_bots.trello.transport.rate_limit import RateLimiter

Json = Any
P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 16
"""Maximum concurrent calls."""
INVALID_REPLY: Final = (AttributeError, LookupError, TypeError, ValueError, OverflowError)
"""Errors of py-trello for JSON without a field that it needs."""
GRACE: Final = 1.0
"""Seconds after its timeout at which a call is abandoned."""


class Trello:
    """A Trello account."""

    def __init__(
        self, tokens: Credentials, api_url: str, *, timeout: float, pace: RateLimiter
    ) -> None:
        self.trouble: str | None = None
        """Why Trello rejects the account, or None."""
        self.timeout = timeout
        self._rejections = 0
        self._tokens = tokens
        self._service = HttpService(tokens, api_url, timeout, pace)
        self.client = TrelloClient(tokens.key, tokens.token, http_service=self._service)
        self._threads = ThreadPoolExecutor(THREADS, "trello")

    def board(self, id: str) -> Board:
        """Return a board without a request."""
        return Board(self.client, quote(id, safe=""))

    def card(self, id: str) -> Card:
        """Return a card without a request."""
        return Card(self.board(""), quote(id, safe=""))

    def label(self, id: str) -> Label:
        """Return a label without a request."""
        return Label(self.client, quote(id, safe=""), "")

    async def read(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of py-trello that sends one GET request; raises Failure."""
        return await self._call(method.__qualname__, lambda: method(*args, **kwargs))

    async def write(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of py-trello that sends one request with changes; raises Failure."""
        return await self._call(method.__qualname__, lambda: method(*args, **kwargs), writes=True)

    async def get(self, path: str, **params: Any) -> Json:
        """Read a resource, such as `/cards/ID`; raises Failure, as all calls do."""
        query = _query(params)
        return await self._call(f"GET {path}", lambda: self._fetch(path, HTTPMethod.GET, query))

    async def token(self, path: str = "", **params: Any) -> Json:
        """Read the bot's token, or a resource below it, such as `/webhooks`."""
        query = _query(params)
        where = f"/tokens/{self._tokens.token}{path}"
        return await self._call(
            f"GET /tokens/…{path}", lambda: self._fetch(where, HTTPMethod.GET, query)
        )

    async def post(self, path: str, **fields: Any) -> Json:
        """Create a resource."""
        return await self._write(HTTPMethod.POST, path, fields)

    async def put(self, path: str, **fields: Any) -> Json:
        """Update a resource."""
        return await self._write(HTTPMethod.PUT, path, fields)

    async def delete(self, path: str, **fields: Any) -> Json:
        """Delete a resource."""
        return await self._write(HTTPMethod.DELETE, path, fields)

    async def attach(
        self, card: str, name: str, data: bytes | Path, title: str | None = None
    ) -> Json:
        """Attach a file to a card, streamed; it is shown as `title` and downloaded as `name`."""
        path = f"/cards/{card}/attachments"

        def send() -> Json:
            with BytesIO(data) if isinstance(data, bytes) else data.open("rb") as file:
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                query = {"name": title or name, "setCover": "false"}
                return self.client.fetch_json(
                    path, HTTPMethod.POST, query_params=query, files={"file": (name, file, kind)}
                )

        return await self._call(f"POST {path}", send, writes=True)

    async def download(self, path: str, max_bytes: int, timeout: float) -> bytes:
        """Download a file of the account, in `timeout` seconds at most; raises Failure."""

        def send() -> bytes:
            return self._service.download(f"/1{path}", max_bytes, timeout)

        return await self._call("GET download", send, timeout=timeout)

    async def close(self) -> None:
        """Close the connections; a running call ends by its timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _write(self, method: HTTPMethod, path: str, fields: Mapping[str, Any]) -> Json:
        return await self._call(
            f"{method} {path}", lambda: self._fetch(path, method, {}, _query(fields)), writes=True
        )

    def _fetch(
        self,
        path: str,
        method: HTTPMethod,
        query: dict[str, Any],
        body: dict[str, Any] | None = None,
    ) -> Json:
        return self.client.fetch_json(
            quote(path, safe="/"), method, query_params=query, post_args=body or None
        )

    async def _call(
        self,
        where: str,
        send: Callable[[], T],
        *,
        writes: bool = False,
        timeout: float | None = None,
    ) -> T:
        result: T | Failure
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout((timeout or self.timeout) + GRACE):
                run = copy_context().run  # the rate limiter reads `background`
                result = await loop.run_in_executor(
                    self._threads, run, _caught, send, where, writes
                )
        except TimeoutError:
            result = api_errors.timed_out(where, "given up", writes=writes)
        return self._checked(result)

    def _checked(self, result: T | Failure) -> T:
        """Return a result or raise a failure; track whether the account is rejected."""
        if not isinstance(result, Failure):
            self.trouble = None
            self._rejections = 0
            return result
        if result.code == api_errors.ACCOUNT:
            self.trouble = f"Trello rejected the bot's credentials: {result}"
            delay = api_errors.PAUSES[min(self._rejections, len(api_errors.PAUSES) - 1)]
            result.retry_after = delay
            self._rejections += 1
        raise result


def connect(trello: TrelloSettings, tokens: Credentials, *, timeout: float) -> Trello:
    """Open the configured account; once per process, since it holds the rate limiter.

    `timeout` is in seconds per call.
    """
    for name in ("httpx", "httpcore"):  # they log URLs and headers
        logging.getLogger(name).setLevel(logging.WARNING)
    return Trello(tokens, trello.api_url, timeout=timeout, pace=RateLimiter())


def _caught(send: Callable[[], T], where: str, writes: bool) -> T | Failure:
    try:
        return send()
    except Failure as error:
        return error.with_traceback(None)
    except INVALID_REPLY as error:
        return api_errors.unconfirmed(
            f"{where}: invalid reply ({type(error).__name__})", writes=writes
        )


def _query(params: Mapping[str, Any]) -> dict[str, Any]:
    """Join lists of texts with commas, and omit parameters that are None."""
    return {
        name: ",".join(value) if _is_list_of_texts(value) else value
        for name, value in params.items()
        if value is not None
    }


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
