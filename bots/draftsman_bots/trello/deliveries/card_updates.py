"""Card updates after a message: its list, queued label, checklists and due date.

Updates are idempotent. A permanent failure becomes a health note and does not fail the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.errors import Failure
from draftsman.jobs.error_classes import ErrorClass, classify
from draftsman.questions.question import QuestionStatus
from draftsman.trello.board import BoardConfig
from draftsman_bots.trello.deliveries.card_context import CardContext
from draftsman_bots.trello.deliveries.checklists import (
    add_checklist,
    close_checklist,
    uses_checklist,
)
from draftsman_bots.trello.deliveries.due_dates import show_expiry
from draftsman_bots.trello.deliveries.field_values import FieldWriter, shows_fields
from draftsman_bots.trello.transport.client import Trello

if TYPE_CHECKING:
    from trello import Card

    from draftsman.trello.service.cards import TrelloCards

QUESTION, CLOSED = DeliveryKind.QUESTION, DeliveryKind.QUESTION_CLOSED


async def apply_updates(
    trello: Trello, fields: FieldWriter, context: CardContext, message: Message
) -> list[str]:
    """Apply the board's moves to the card; return the permanent problems.

    The status of a job moves no card whose pull request has ended: messages of its follow-ups and
    of its merge may be later than that of the end. Raises a Failure that can be retried.
    """
    config, card = context.config, context.card
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
    config, question = context.config, message.question
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
