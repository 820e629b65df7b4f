"""Fixtures for the Trello channel: a fake Trello, an account and messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.people.policy import Person
from draftsman_bots.process.health import HealthState
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.deliveries.card_context import BoardSource
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.transport.client import Trello, connect
from draftsman_testing.channel import samples
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.accounts import settings


def account_of(trello: FakeTrello, timeout: float = 5.0) -> Trello:
    """Return the bot's account."""
    tokens = Credentials(trello.key, trello.token, trello.secret)
    return connect(settings(trello.api_url), tokens, timeout=timeout)


@asynccontextmanager
async def trello_channel(
    trello: FakeTrello,
    boards: BoardSource | None = None,
    health: HealthState | None = None,
) -> AsyncIterator[TrelloChannel]:
    """Return the channel of the bot of this Trello."""
    async with account_of(trello) as account:
        yield TrelloChannel(account, boards, health)


class StaticBoards:
    """A fixed list of watched boards."""

    def __init__(self, *configs: BoardConfig) -> None:
        self.configs = list(configs)

    async def all(self) -> list[BoardConfig]:
        """Return the watched boards."""
        return self.configs


class CardHarness:
    """A board with a card and members."""

    def __init__(self, trello: FakeTrello) -> None:
        self.trello = trello
        self.anna = trello.member("anna")
        self.ben = trello.member("ben")
        self.board = trello.board("Work", [self.anna, self.ben])
        self.todo, self.doing, self.review = (
            trello.list(self.board, name) for name in ("To do", "Doing", "Review")
        )
        self.queued = trello.label(self.board, "draftsman: queued")
        self.card = trello.card(self.board, self.todo, "Fix the parser", by=self.anna)

    @property
    def comments(self) -> list[str]:
        """Texts of the comments on the card, in order."""
        return [comment.text for comment in self.trello.comments(self.card)]

    @property
    def list_now(self) -> str:
        """The current list of the card."""
        return str(self.trello.card_now(self.card)["idList"])

    def config(self, **fields: Any) -> BoardConfig:
        """Return a configuration of the board."""
        return BoardConfig(board_id=self.board, name="Work", **fields)

    def message(self, kind: DeliveryKind, /, **fields: Any) -> Message:
        """Return a message of D-7 for the card; fields of its job are given as `subject_…`."""
        about = {
            name.removeprefix("subject_"): fields.pop(name)
            for name in list(fields)
            if name.startswith("subject_")
        }
        message = samples.message(kind, **{"target": self.card} | fields)
        return replace(message, subject=replace(message.subject, **about))


def person(name: str, own: str | None = None) -> Person:
    """Return a person, with or without a Trello id."""
    return Person(name, frozenset({"approver"}), {"trello": own} if own else {})
