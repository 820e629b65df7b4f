"""The channel `trello`: comments, rewritten in place, and files; each once, found by its marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.delivery import (
    COPY_GONE,
    ChannelName,
    DeliveryKind,
    Ended,
    File,
    Limit,
    Message,
    Receipt,
    Unknown,
)
from draftsman.errors import Failure
from draftsman_bots.health import Condition
from draftsman_bots.text import clamped
from draftsman_bots.trello.board import Scene, Stage, Watched, concerns
from draftsman_bots.trello.client import Trello
from draftsman_bots.trello.effects import follow
from draftsman_bots.trello.failures import ACCOUNT, InDoubt
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.place import text_of, title
from draftsman_bots.trello.render import render
from draftsman_bots.trello.search import search
from draftsman_bots.trello.text import marker_of, signed

FILE_NAME: Final = 200


class TrelloChannel:
    """One account. Without `boards` nothing is done to a card but to comment on it.

    What is wrong with a board is a note of the bot's health until it is right again.
    """

    name = ChannelName.TRELLO

    def __init__(
        self, trello: Trello, boards: Watched | None = None, health: Condition | None = None
    ) -> None:
        self._trello = trello
        self._health = health or Condition()
        self._stage = Stage(trello, boards)

    @property
    def trouble(self) -> str | None:
        """Why Trello takes nothing from the bot at all; None while it does."""
        return self._trello.trouble

    def limits(self, message: Message) -> Sequence[Limit]:
        """Take from no bucket: the account paces all its calls itself."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the account, whose limits and whose troubles are everybody's."""
        whole = failure.code == ACCOUNT or failure.http_status == 429
        return str(self.name) if whole else f"{self.name}:{message.target}"

    async def send(self, message: Message) -> Ended:
        """Comment on the card, then do with it what its board wants."""
        try:
            scene = await self._stage.scene(message)
            text = signed(_body(message, scene), message.marker)
            done = await self._trello.post(f"/cards/{message.target}/actions/comments", text=text)
        except Failure as error:
            return _ended(error)
        ended = _receipt(done)
        if isinstance(ended, Receipt) and (failed := await self._after(message, scene)):
            return Unknown(f"it is said, but the card is not as its board wants it: {failed}")
        return ended

    async def find(self, message: Message) -> Ended | None:
        """Look for it; to rewrite a copy once more does no harm."""
        if message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED:
            return None
        try:
            found = await search(self._trello, message)
            if found is None:
                return None
            scene = await self._stage.scene(message)
        except Failure as error:
            return _again(error)
        return await self._after(message, scene) or Receipt(found)

    async def edit(self, message: Message) -> Ended:
        """Rewrite a comment, under the marker that it has."""
        ref = message.edits
        if not is_id(ref):
            return Failure(f"no comment is called {ref!r}", origin="trello", code=COPY_GONE)
        try:
            scene = await self._stage.scene(message)
            was = text_of(await self._trello.get(f"/actions/{ref}", fields="data"))
            text = signed(_body(message, scene), marker_of(was) or message.marker)
            if text != was:
                await self._trello.put(f"/actions/{ref}", text=text)
        except Failure as error:
            return _ended(error)
        return await self._after(message, scene) or Receipt(str(ref))

    async def upload(self, message: Message, file: File) -> Ended:
        """Attach a file to the card."""
        name = clamped(file.name, FILE_NAME) or "file"
        data = file.data or b"\n"  # an empty file is none
        try:
            done = await self._trello.attach(message.target, name, data, title(message, name))
        except Failure as error:
            return _ended(error)
        return _receipt(done)

    async def close(self) -> None:
        """Hold nothing open: the account is its opener's."""

    async def _after(self, message: Message, scene: Scene) -> Failure | None:
        """Do what the card's board wants; return a failure that may be over later."""
        config = scene.config
        if config is None or not concerns(config, message):
            return None
        try:
            wrong = await follow(self._trello, scene, message)
        except Failure as error:
            return _again(error)
        if wrong:
            self._health.note(f"moves:{config.board_id}", "; ".join(wrong))
        elif message.subject.status in config.moves:
            self._health.clear(f"moves:{config.board_id}")
        return None


def _body(message: Message, scene: Scene) -> str:
    return render(message, scene.names, scene.template)


def _ended(error: Failure) -> Ended:
    return Unknown(str(error)) if isinstance(error, InDoubt) else error


def _again(error: Failure) -> Failure:
    """Return a failure of what may be repeated: it is in no doubt."""
    return Failure(
        str(error),
        origin=error.origin,
        code=error.code,
        http_status=error.http_status,
        retry_after=error.retry_after,
        declared=error.declared,
    )


def _receipt(done: Any) -> Receipt | Unknown:
    made = done.get("id") if isinstance(done, dict) else None
    return Receipt(made) if isinstance(made, str) else Unknown("a reply that names nothing")
