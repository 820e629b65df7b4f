"""HTTP adapters from py-trello to the fake, by `requests`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import pytest
import requests
from trello import TrelloClient
from trello.exceptions import ResourceUnavailable

from draftsman_testing.trello import FakeTrello

T = TypeVar("T")


def rebase_url(url: str, base: str) -> str:
    """Return a URL of either Trello host with the host of the fake."""
    for host in ("https://api.trello.com", "https://trello.com"):
        if url.startswith(f"{host}/1/"):
            return base + url.removeprefix(host)
    raise ValueError(f"no URL of Trello: {url}")


class RequestsAdapter:
    """`requests` with another host."""

    def __init__(self, base: str) -> None:
        self._base = base

    def request(self, method: str, url: str, **how: Any) -> requests.Response:
        """Send a request."""
        return requests.request(method, rebase_url(url, self._base), timeout=10, **how)

    def post(self, url: str, **how: Any) -> requests.Response:
        """Post a form."""
        return self.request("POST", url, **how)


async def run_in_thread(work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a blocking call of py-trello in a thread."""
    return await asyncio.to_thread(work, *args, **kwargs)


async def refusal(work: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[int, str]:
    """Return the status and the text of the error that a call of py-trello raises."""
    with pytest.raises(ResourceUnavailable) as caught:
        await run_in_thread(work, *args, **kwargs)
    return caught.value._status, str(caught.value._msg).split(" at https://")[0]


async def ask(trello: FakeTrello, method: str, path: str, **args: Any) -> httpx.Response:
    """Send a request with key and token in the header."""
    pair = f'oauth_consumer_key="{trello.key}", oauth_token="{trello.token}"'
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.request(
            method,
            f"{trello.api_url}/1{path}",
            params=args or None,
            headers={"Authorization": f"OAuth {pair}"},
        )


__all__ = ["RequestsAdapter", "TrelloClient", "ask", "refusal", "run_in_thread"]
