"""Trello delivery channel: comments edited in place and attachments, deduplicated by marker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    DeliveryKind,
    File,
    Message,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.questions.question import QuestionStatus
from draftsman_bots.json_fields import nested, string
from draftsman_bots.process.health import HealthState
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries.card_context import (
    BoardSource,
    CardContext,
    CardContextLoader,
    needs_context,
)
from draftsman_bots.trello.deliveries.checklists import (
    add_checklist,
    close_checklist,
    uses_checklist,
)
from draftsman_bots.trello.deliveries.due_dates import show_expiry
from draftsman_bots.trello.deliveries.field_values import FieldWriter, shows_fields
from draftsman_bots.trello.deliveries.markdown import MAX_NAME, marker_of, with_marker
from draftsman_bots.trello.deliveries.render import render
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.transport.api_errors import ACCOUNT, UnconfirmedCall
from draftsman_bots.trello.transport.client import Trello

if TYPE_CHECKING:
    from trello import Card

    from draftsman_bots.trello.records.service import TrelloCards


# References to delivered messages, and their match by marker. Pure.
#
# The reference of a comment is the id of its action, as in webhooks and lists; that of a file is
# the id of the attachment.


_TAG: Final = 13
"""Characters of the marker in the title of a file: enough to tell the files of one job."""


def file_title(message: Message, name: str) -> str:
    """Return a title that contains the marker: an attachment has no other field for it."""
    tag = f" · {message.marker[:_TAG]}"
    return truncate(name, MAX_NAME - len(tag)) + tag


def comment_text(action: Any) -> str:
    """Return the text of a comment; empty for any other action."""
    return string(nested(action, "data"), "text")


def matches(message: Message, action: Any) -> bool:
    """Return whether an action is the comment of a message."""
    return marker_of(comment_text(action)) == message.marker


def file_matches(message: Message, attachment: Any) -> bool:
    """Return whether an attachment is the file of a message."""
    return string(attachment, "name").endswith(f" · {message.marker[:_TAG]}")


# Search for a delivered message on a card by its marker.


CLOCK_SKEW: Final = timedelta(minutes=5)
"""Maximum difference between the clocks of the database and Trello."""
PAGE_SIZE: Final = 1000
"""Actions per page, Trello's maximum."""
MAX_PAGES: Final = 20


async def search(trello: Trello, message: Message) -> str | None:
    """Return the reference of a delivered message, or None. Raises Failure."""
    card = trello.card(message.target)
    if message.kind is DeliveryKind.FILE:
        attachments = await trello.read(card.fetch_attachments, force=True)
        return _find_match(attachments, message, file_matches)
    before: str | None = None
    since = (message.created_at - CLOCK_SKEW).isoformat()
    for _ in range(MAX_PAGES):
        page = await trello.read(
            card.fetch_actions, "commentCard", since=since, before=before, action_limit=PAGE_SIZE
        )
        if (reference := _find_match(page, message, matches)) is not None:
            return reference
        last = page[-1].get("date") if isinstance(page, list) and len(page) >= PAGE_SIZE else None
        if not isinstance(last, str) or last == before:
            return None
        before = last
    return None


def _find_match(page: Any, message: Message, is_match: Any) -> str | None:
    for entry in page if isinstance(page, list) else []:
        if is_match(message, entry) and is_id(entry.get("id")):
            return str(entry["id"])
    return None


# Card updates after a message: its list, queued label, checklists and due date.
#
# Updates are idempotent. A permanent failure becomes a health note and does not fail the message.


QUESTION = DeliveryKind.QUESTION
CLOSED = DeliveryKind.QUESTION_CLOSED


async def apply_updates(
    trello: Trello, fields: FieldWriter, context: CardContext, message: Message
) -> list[str]:
    """Apply the board's moves to the card; return the permanent problems.

    The status of a job moves no card whose pull request has ended: messages of its follow-ups and
    of its merge may be later than that of the end. Raises a Failure that can be retried.
    """
    config = context.config
    card = context.card
    if config is None or card is None or card.closed:
        return []
    problems: list[str] = []
    ended = message.subject.ended_pull is not None
    move = None if ended else config.moves.get(message.subject.status)
    if (end := (message.payload or {}).get("pull_request")) is not None:
        move = config.end_moves.get(str(end))
    if move is not None and move.moves(card.idList):
        problems += await _move(trello, config, card, move.to)
    queued = config.queued_label_id
    if message.kind is DeliveryKind.RESULT and queued in card.idLabels:
        problems += await _unlabel(trello, card, str(queued))
    if shows_fields(config, message):
        try:
            await fields.set_fields(trello, config, context.fields, message)
        except Failure as error:
            _note(error, "")  # no problem if refused: doctor shows missing fields
    return problems


async def update_question(
    trello: Trello, cards: TrelloCards, context: CardContext, message: Message
) -> list[str]:
    """Show an open question by a checklist and the due date, or its end; return the problems.

    Raises a Failure that can be retried.
    """
    config = context.config
    question = message.question
    if question is None or message.kind not in (QUESTION, CLOSED):
        return []
    problems: list[str] = []
    is_open = question.status is QuestionStatus.OPEN
    try:
        if not is_open:
            if await _has_checklist(cards, config, message):
                await close_checklist(trello, cards, message, context.names)
        elif config is not None and uses_checklist(config, question):
            await add_checklist(trello, cards, message)
    except Failure as error:
        problems += _note(error, f"{question.name}: its checklist was not changed")
    if config is not None:
        try:
            await show_expiry(trello, cards, config, message.target)
        except Failure as error:
            problems += _note(error, f"{question.name}: the due date was not changed")
    return problems


async def _has_checklist(cards: TrelloCards, config: BoardConfig | None, message: Message) -> bool:
    """Return whether a closed question may have a checklist on its card."""
    question = message.question
    if question is None:
        return False
    if config is not None and uses_checklist(config, question):
        return True
    stored = await cards.checklist(message.target, question.job, question.ordinal)
    return stored is not None


async def _move(trello: Trello, config: BoardConfig, card: Card, to: str) -> list[str]:
    """Move a card, unless the list is archived or on another board."""
    try:
        target = await trello.get(f"/lists/{to}", fields=["closed", "idBoard"])
        if target.get("closed") or target.get("idBoard") != config.board_id:
            reason = "archived" if target.get("closed") else "on another board"
            return [f"board {config.name!r}: list {to} is {reason}; cards are not moved to it"]
        await trello.write(card.change_list, to)
    except Failure as error:
        return _note(error, f"board {config.name!r}: a card was not moved to list {to}")
    return []


async def _unlabel(trello: Trello, card: Card, label: str) -> list[str]:
    try:
        await trello.write(card.remove_label, trello.label(label))
    except Failure as error:
        return _note(error, f"cannot remove label {label} from card {card.id}")
    return []


def _note(error: Failure, problem: str) -> list[str]:
    """Return a note of a permanent failure; raise any other."""
    if classify(error) is not ErrorClass.PERMANENT:
        raise error
    return [f"{problem}: {error}"]


FILE_NAME: Final = 200


class TrelloChannel(Channel):
    """Delivery through a Trello account. Without `boards`, cards are not moved or relabeled.

    A problem with a board is a health note until an update succeeds.
    """

    name = "trello"

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
