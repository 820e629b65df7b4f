"""Client of the Web API: each call returns data, a Failure or Unconfirmed, and none raises."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, Final

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from draftsman.deliveries.delivery import Unconfirmed
from draftsman.errors import Failure
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.transport.api_errors import ACCOUNT, translate
from draftsman_bots.slack.transport.installation import Installation

Data = Mapping[str, Any]
PAGE_SIZE: Final = 200
"""Messages of a page, the most that Slack recommends."""


def client(token: str, api_url: str, timeout: float) -> AsyncWebClient:
    """Return a client without retries, because the outbox schedules them.

    `timeout` is in seconds, for each call.
    """
    return AsyncWebClient(
        token, base_url=api_url, timeout=max(1, math.ceil(timeout)), retry_handlers=[]
    )


class WebApi:
    """The Web API, with the token of one account."""

    def __init__(
        self,
        web: AsyncWebClient,
        timeout: float,
        account: Installation | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.web = web
        self.identity = identity or Identity()
        self._account = account
        self.timeout = timeout
        """Seconds for each call."""
        self.trouble: str | None = None
        """Why the account cannot post; None again after a successful call."""

    async def write(self, method: str, call: Awaitable[Any]) -> Data | Failure | Unconfirmed:
        """Call a method that changes data."""
        return await self._call(method, call, writes=True)

    async def read(self, method: str, call: Awaitable[Any]) -> Data | Failure:
        """Call a method that can be repeated."""
        result = await self._call(method, call, writes=False)
        if isinstance(result, Unconfirmed):
            return Failure(result.reason, origin="slack", code="no_reply")
        return result

    async def put(self, url: str, data: bytes) -> Failure | None:
        """Upload the bytes of a file to Slack's URL; the file is not visible yet."""
        limit = aiohttp.ClientTimeout(total=self.timeout)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.post(
                    url, data=data, proxy=self.web.proxy, allow_redirects=False
                ) as response,
            ):
                status = response.status
        except Exception as error:
            result = translate(error, "upload", writes=False)
            return result if isinstance(result, Failure) else None
        if status == 200:
            return None
        return Failure(f"HTTP {status}: upload", origin="slack", code="upload")

    async def pages(self, method: str, **args: Any) -> AsyncIterator[Data | Failure]:
        """Yield the pages of a list; if a page fails, the last item is a Failure."""
        cursor = None
        while True:
            params = {**args, "cursor": cursor, "limit": PAGE_SIZE}
            query = {name: value for name, value in params.items() if value is not None}
            call = self.web.api_call(method, http_verb="GET", params=query)
            result = await self.read(method, call)
            yield result
            if isinstance(result, Failure):
                return
            metadata = result.get("response_metadata")
            cursor = metadata.get("next_cursor") if isinstance(metadata, Mapping) else None
            if not cursor:
                return

    async def _call(
        self, method: str, call: Awaitable[Any], *, writes: bool
    ) -> Data | Failure | Unconfirmed:
        try:
            async with asyncio.timeout(self.timeout):
                response = await call
            result: Data | Failure | Unconfirmed = response.data
            if not isinstance(result, dict):
                raise TypeError("no object")
            self.identity.read_scopes(response.headers)
        except Exception as error:
            result = translate(error, method, writes=writes)
        self._record(method, result)
        return result

    def _record(self, method: str, result: Data | Failure | Unconfirmed) -> None:
        if self._account is not None:
            self._account.record_result(method, result)
        if isinstance(result, Failure):
            if result.code in ACCOUNT:
                self.trouble = f"Slack rejects the bot's calls: {result}"
        elif not isinstance(result, Unconfirmed):
            self.trouble = None
