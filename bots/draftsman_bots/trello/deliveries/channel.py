"""Trello delivery channel: comments edited in place and attachments, deduplicated by marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.delivery import (
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
from draftsman_bots.process.health import HealthState
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries.card_context import (
    BoardSource,
    CardContext,
    CardContextLoader,
    needs_context,
)
from draftsman_bots.trello.deliveries.card_updates import apply_updates, update_question
from draftsman_bots.trello.deliveries.checklists import uses_checklist
from draftsman_bots.trello.deliveries.field_values import FieldWriter
from draftsman_bots.trello.deliveries.markdown import marker_of, with_marker
from draftsman_bots.trello.deliveries.message_ref import comment_text, file_title
from draftsman_bots.trello.deliveries.message_search import search
from draftsman_bots.trello.deliveries.render import render
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.transport.api_errors import ACCOUNT, UnconfirmedCall
from draftsman_bots.trello.transport.client import Trello

if TYPE_CHECKING:
    from draftsman.trello.service.cards import TrelloCards

FILE_NAME: Final = 200


class TrelloChannel:
    """Delivery through a Trello account. Without `boards`, cards are not moved or relabeled.

    A problem with a board is a health note until an update succeeds.
    """

    name = ChannelName.TRELLO

    def __init__(
        self,
        trello: Trello,
        boards: BoardSource | None = None,
        health: HealthState | None = None,
        cards: TrelloCards | None = None,
    ) -> None:
        """Without `cards`, no checklists and due dates are changed."""
        self._trello = trello
        self._cards = cards
        self._fields = FieldWriter()
        self._health = health or HealthState()
        self._contexts = CardContextLoader(trello, boards)

    @property
    def trouble(self) -> str | None:
        """Why Trello rejects the account, or None."""
        return self._trello.trouble

    def served(self) -> Sequence[str] | None:
        """Return None: all targets."""
        return None

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return no limits: the client limits all calls of the account."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the account's bucket for failures of the account, else the card's."""
        affects_account = failure.code == ACCOUNT or failure.http_status == 429
        return str(self.name) if affects_account else f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Post a comment, then apply the board's card updates."""
        try:
            context = await self._contexts.load(message)
            text = with_marker(_body(message, context), message.marker)
            comment = await self._trello.write(self._trello.card(message.target).comment, text)
        except Failure as error:
            return _to_result(error)
        result = _receipt(comment)
        if isinstance(result, Receipt) and (failed := await self._update_card(message, context)):
            return Unconfirmed(f"the comment was posted, but the card was not updated: {failed}")
        return result

    async def find(self, message: Message) -> SendResult | None:
        """Search the card for the message; edits are not searched, since they are idempotent."""
        if message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED:
            return None
        try:
            comment = await search(self._trello, message)
            if comment is None:
                return None
            context = await self._contexts.load(message)
        except Failure as error:
            return _retryable(error)
        return await self._update_card(message, context) or Receipt(comment)

    async def edit(self, message: Message) -> SendResult:
        """Edit a comment and keep its marker."""
        ref = message.edits
        if not is_id(ref):
            return Failure(f"no comment has the id {ref!r}", origin="trello", code=COPY_GONE)
        try:
            context = await self._contexts.load(message)
            old_text = comment_text(await self._trello.get(f"/actions/{ref}", fields="data"))
            text = with_marker(_body(message, context), marker_of(old_text) or message.marker)
            if text != old_text:
                card = self._trello.card(message.target)
                await self._trello.write(card.update_comment, ref, text)
        except Failure as error:
            return _to_result(error)
        return await self._update_card(message, context) or Receipt(str(ref))

    async def upload(self, message: Message, file: File) -> SendResult:
        """Attach a file to the card."""
        name = truncate(file.name, FILE_NAME) or "file"
        data = file.data or b"\n"  # Trello rejects an empty file
        try:
            attachment = await self._trello.attach(
                message.target, name, data, file_title(message, name)
            )
        except Failure as error:
            return _to_result(error)
        return _receipt(attachment)

    async def close(self) -> None:
        """Do nothing: the client belongs to the caller."""

    async def _update_card(self, message: Message, context: CardContext) -> Failure | None:
        """Apply the board's card updates; return a failure that can be retried."""
        config = context.config
        try:
            problems = []
            if self._cards is not None:
                problems = await update_question(self._trello, self._cards, context, message)
            self._report("questions", context, problems, done=message.question is not None)
            if config is None or not needs_context(config, message):
                return None
            problems = await apply_updates(self._trello, self._fields, context, message)
        except Failure as error:
            return _retryable(error)
        done = message.subject.status in config.moves
        self._report("moves", context, problems, done=done)
        return None

    def _report(
        self, name: str, context: CardContext, problems: Sequence[str], *, done: bool
    ) -> None:
        """Note the permanent problems of updates of a board; without any, clear the note."""
        if (config := context.config) is None:
            return
        if problems:
            self._health.note(f"{name}:{config.board_id}", "; ".join(problems))
        elif done:
            self._health.clear(f"{name}:{config.board_id}")


def _body(message: Message, context: CardContext) -> str:
    config = context.config
    checklist = config is not None and uses_checklist(config, message.question)
    return render(message, context.names, context.template, checklist=checklist)


def _to_result(error: Failure) -> SendResult:
    return Unconfirmed(str(error)) if isinstance(error, UnconfirmedCall) else error


def _retryable(error: Failure) -> Failure:
    """Return a plain Failure, which is not unconfirmed: the call may be repeated."""
    return Failure(
        str(error),
        origin=error.origin,
        code=error.code,
        http_status=error.http_status,
        retry_after=error.retry_after,
        declared=error.declared,
    )


def _receipt(response: Any) -> Receipt | Unconfirmed:
    id = response.get("id") if isinstance(response, dict) else None
    return Receipt(id) if isinstance(id, str) else Unconfirmed("Trello's reply has no id")
