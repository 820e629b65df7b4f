"""A fake Trello with a board, and py-trello's own client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
from trello import TrelloClient

from draftsman_bots.trello.boards import board_scans
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.http_adapters import RequestsAdapter
from tests.bots.trello.webhook_receiver import WebhookReceiver, receive_webhooks

SCAN_INTERVAL: Final = board_scans.INTERVAL
"""Seconds between two scans of a board, which tests of other things do not wait for."""


@pytest.fixture(autouse=True)
def _scan_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_scans, "INTERVAL", 0.02)
    monkeypatch.setattr(board_scans, "SETTLE", 0.01)


@pytest.fixture
async def trello() -> AsyncIterator[FakeTrello]:
    """Give a fake Trello."""
    async with FakeTrello() as fake:
        yield fake


@pytest.fixture
async def receiver(trello: FakeTrello) -> AsyncIterator[WebhookReceiver]:
    """Give a callback for webhooks."""
    async with receive_webhooks(trello) as receiver:
        yield receiver


@pytest.fixture
def client(trello: FakeTrello) -> TrelloClient:
    """Give py-trello's client, over requests."""
    return TrelloClient(trello.key, trello.token, http_service=RequestsAdapter(trello.api_url))


@pytest.fixture
def anna(trello: FakeTrello) -> str:
    """Give a member."""
    return trello.member("Anna Berg")


@pytest.fixture
def board(trello: FakeTrello, anna: str) -> str:
    """Give a board with a member and the bot."""
    return trello.board("Work", [anna])


@pytest.fixture
def todo(trello: FakeTrello, board: str) -> str:
    """Give a list."""
    return trello.list(board, "To do")


@pytest.fixture
def card(trello: FakeTrello, board: str, todo: str, anna: str) -> str:
    """Give a card."""
    return trello.card(board, todo, "Fix the parser", by=anna)
