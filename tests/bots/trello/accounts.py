"""Trello accounts for tests, connected to a given URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from draftsman.settings.secret import SecretSettings
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_bots.trello.transport.client import Trello, connect

TOKENS: Final = Credentials(
    "key-0123456789abcdef", "ATTAtoken-fedcba9876543210", "s3cret-of-the-app"
)
API: Final = "https://api.trello.com"
CARD: Final = "5f1e0c9a8b7d6e5f4a3b2c1d"


def settings(api_url: str = API) -> TrelloSettings:
    """Return the settings of an account, without secrets."""
    unset = SecretSettings(env="NOWHERE")
    return TrelloSettings(key=unset, token=unset, api_url=api_url)


@asynccontextmanager
async def account(api_url: str = API, timeout: float = 5.0) -> AsyncIterator[Trello]:
    """Give a connected account."""
    async with connect(settings(api_url), TOKENS, timeout=timeout) as trello:
        yield trello
