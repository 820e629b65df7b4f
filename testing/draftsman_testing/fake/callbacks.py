"""Requests of a fake server to the app's own HTTP endpoint."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp


@dataclass(frozen=True, slots=True)
class CallbackResponse:
    """The app's response; the status is None if it is late. Header names are lowercase."""

    status: int | None = None
    text: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class CallbackClient:
    """An HTTP client that is opened by its first request."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def send(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> CallbackResponse:
        """Send raw bytes; redirects are not followed."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, timeout=limit, allow_redirects=False
            ) as response:
                text = await response.text(errors="replace")
                pairs = tuple((name.lower(), value) for name, value in response.headers.items())
                return CallbackResponse(response.status, text, pairs)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return CallbackResponse()
