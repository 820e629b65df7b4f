"""The board on which the live checks of Trello write, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.deliveries.channels.live_check import LiveSession
from draftsman.deliveries.channels.removals import Remove
from draftsman.errors import NotFound, UsageError
from draftsman_bots.json_fields import string
from draftsman_bots.trello import credentials
from draftsman_bots.trello.boards import board_setup
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_bots.trello.transport.client import Trello
from draftsman_bots.trello.transport.client import connect as connect_account

TIMEOUT: Final = 15.0
"""Seconds for each call."""
NAME: Final = "draftsman live check"


@dataclass(slots=True)
class ScratchBoard:
    """A board with a list and a card for the checks."""

    session: LiveSession
    trello: Trello
    api_url: str
    username: str
    given: board_setup.BoardLayout | None
    """The board that `--in` names; None: one is created."""
    board: str = ""
    card: str = ""
    url: str = ""
    """URL of the card."""

    @property
    def plan(self) -> str:
        """The question before the first write."""
        if self.given is None:
            return f"Create a board as @{self.username}, with a list and a card, and delete it?"
        return (
            f"Add a list and a card to the board {self.given.name!r} as @{self.username}, delete"
            " the card, and archive the list?"
        )

    @property
    def facts(self) -> Mapping[str, str]:
        """The URL of the API, and whose board it is."""
        kind = "created for the checks" if self.given is None else "named by --in"
        return {"Trello": self.api_url, "board": kind}

    async def begin(self) -> None:
        """Create the board, its list and the card."""
        if self.given is None:
            board = await self._create("board", "/boards", name=NAME, defaultLists="false")
            self.board = str(board["id"])
        else:
            self.board = self.given.id
        new_list = await self._create("list", "/lists", name=NAME, idBoard=self.board)
        card = await self._create("card", "/cards", name=NAME, idList=str(new_list["id"]))
        self.card = str(card["id"])
        self.url = string(card, "shortUrl")

    async def close(self) -> None:
        """Close the connections."""
        await self.trello.close()

    async def add_field(self, name: str, type: str, *options: str) -> str:
        """Create a custom field of the board; return its id."""
        values = [
            {"value": {"text": text}, "pos": number} for number, text in enumerate(options, 1)
        ]
        fields: dict[str, Any] = {"name": f"{NAME} {name}", "type": type, "pos": "bottom"}
        fields |= {"idModel": self.board, "modelType": "board"}
        reply = await self._create(
            "custom field", "/customFields", **fields, options=values or None
        )
        return str(reply["id"])

    async def _create(self, what: str, path: str, **fields: Any) -> dict[str, Any]:
        """Create an object, to be removed at the end, with the board if the checks made that."""

        def removal(reply: dict[str, Any]) -> tuple[str, Remove]:
            own = f"{path}/{string(reply, 'id')}"
            name = f"{what} {string(reply, 'shortUrl') or fields['name']}"
            if self.given is not None and what == "list":  # Trello deletes no list
                return name, lambda: self.trello.put(f"{own}/closed", value="true")
            if self.given is not None or what == "board":
                return name, lambda: self.trello.delete(own)
            return name, _with_the_board

        created: dict[str, Any] = await self.session.removals.created(
            f"a {what} {fields['name']!r}", self.trello.post(path, **fields), removal
        )
        return created


async def _with_the_board() -> None:
    """Do nothing: the board is deleted with all that is on it."""


async def connect(session: LiveSession) -> ScratchBoard:
    """Connect to the account; raises ConfigError, UsageError, Failure."""
    settings = TrelloSettings.required(session.settings)
    trello = connect_account(settings, credentials.read(settings), timeout=TIMEOUT)
    try:
        member = await trello.get("/members/me", fields="username")
        given = None
        if session.scratch is not None:
            board = board_setup.parse_reference(session.scratch)
            given = await board_setup.fetch_layout(trello, board)
    except NotFound as error:
        await trello.close()
        raise UsageError(f"--in {session.scratch}: {error}") from None
    except BaseException:
        await trello.close()
        raise
    return ScratchBoard(session, trello, settings.api_url, string(member, "username"), given)
