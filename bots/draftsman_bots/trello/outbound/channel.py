"""The channel `trello`: comments, rewritten in place, and files; each once, found by its marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.messages.delivery import (
    COPY_GONE,
    ChannelName,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman_bots.health import HealthState
from draftsman_bots.text import truncate
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.markdown import marker_of, with_marker
from draftsman_bots.trello.outbound.card_context import (
    BoardSource,
    CardContext,
    CardContextLoader,
    needs_context,
)
from draftsman_bots.trello.outbound.card_updates import apply_updates
from draftsman_bots.trello.outbound.message_ref import comment_text, file_title
from draftsman_bots.trello.outbound.message_search import search
from draftsman_bots.trello.outbound.render import render
from draftsman_bots.trello.transport.api_errors import ACCOUNT, UnconfirmedCall
from draftsman_bots.trello.transport.client import Trello

FILE_NAME: Final = 200


class TrelloChannel:
    """One account. Without `boards` nothing is done to a card but to comment on it.

    What is wrong with a board is a note of the bot's health until it is right again.
    """

    name = ChannelName.TRELLO

    def __init__(
        self, trello: Trello, boards: BoardSource | None = None, health: HealthState | None = None
    ) -> None:
        self._trello = trello
        self._health = health or HealthState()
        self._stage = CardContextLoader(trello, boards)

    @property
    def trouble(self) -> str | None:
        """Why Trello takes nothing from the bot at all; None while it does."""
        return self._trello.trouble

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Take from no bucket: the account paces all its calls itself."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the account, whose limits and whose troubles are everybody's."""
        whole = failure.code == ACCOUNT or failure.http_status == 429
        return str(self.name) if whole else f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Comment on the card, then do with it what its board wants."""
        try:
            scene = await self._stage.load(message)
            text = with_marker(_body(message, scene), message.marker)
            done = await self._trello.post(f"/cards/{message.target}/actions/comments", text=text)
        except Failure as error:
            return _ended(error)
        ended = _receipt(done)
        if isinstance(ended, Receipt) and (failed := await self._after(message, scene)):
            return Unconfirmed(f"it is said, but the card is not as its board wants it: {failed}")
        return ended

    async def find(self, message: Message) -> SendResult | None:
        """Look for it; to rewrite a copy once more does no harm."""
        if message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED:
            return None
        try:
            found = await search(self._trello, message)
            if found is None:
                return None
            scene = await self._stage.load(message)
        except Failure as error:
            return _again(error)
        return await self._after(message, scene) or Receipt(found)

    async def edit(self, message: Message) -> SendResult:
        """Rewrite a comment, under the marker that it has."""
        ref = message.edits
        if not is_id(ref):
            return Failure(f"no comment is called {ref!r}", origin="trello", code=COPY_GONE)
        try:
            scene = await self._stage.load(message)
            was = comment_text(await self._trello.get(f"/actions/{ref}", fields="data"))
            text = with_marker(_body(message, scene), marker_of(was) or message.marker)
            if text != was:
                await self._trello.put(f"/actions/{ref}", text=text)
        except Failure as error:
            return _ended(error)
        return await self._after(message, scene) or Receipt(str(ref))

    async def upload(self, message: Message, file: File) -> SendResult:
        """Attach a file to the card."""
        name = truncate(file.name, FILE_NAME) or "file"
        data = file.data or b"\n"  # an empty file is none
        try:
            done = await self._trello.attach(message.target, name, data, file_title(message, name))
        except Failure as error:
            return _ended(error)
        return _receipt(done)

    async def close(self) -> None:
        """Hold nothing open: the account is its opener's."""

    async def _after(self, message: Message, scene: CardContext) -> Failure | None:
        """Do what the card's board wants; return a failure that may be over later."""
        config = scene.config
        if config is None or not needs_context(config, message):
            return None
        try:
            wrong = await apply_updates(self._trello, scene, message)
        except Failure as error:
            return _again(error)
        if wrong:
            self._health.note(f"moves:{config.board_id}", "; ".join(wrong))
        elif message.subject.status in config.moves:
            self._health.clear(f"moves:{config.board_id}")
        return None


def _body(message: Message, scene: CardContext) -> str:
    return render(message, scene.names, scene.template)


def _ended(error: Failure) -> SendResult:
    return Unconfirmed(str(error)) if isinstance(error, UnconfirmedCall) else error


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


def _receipt(done: Any) -> Receipt | Unconfirmed:
    made = done.get("id") if isinstance(done, dict) else None
    return Receipt(made) if isinstance(made, str) else Unconfirmed("a reply that names nothing")
