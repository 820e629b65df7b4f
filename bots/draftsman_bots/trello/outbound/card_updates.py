"""What happens to a card once something was said on it: it moves, and is queued no more.

What is so already is left alone, so that nothing is done twice; what cannot be done is a note for
whoever looks after the board, and keeps no message back.
"""

from __future__ import annotations

from draftsman.domain.messages.delivery import DeliveryKind, Message
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.domain.trello.board import BoardConfig
from draftsman.errors import Failure
from draftsman_bots.trello.outbound.card_context import CardContext
from draftsman_bots.trello.transport.client import Trello


async def apply_updates(trello: Trello, scene: CardContext, message: Message) -> list[str]:
    """Do what the card's board wants; return what is wrong with that board.

    Raises a Failure that may be over later.
    """
    config = scene.config
    if config is None or scene.card.get("closed"):
        return []
    found: list[str] = []
    move = config.moves.get(message.subject.status)
    if move is not None and move.moves(str(scene.card.get("idList"))):
        found += await _move(trello, config, message.target, move.to)
    queued = config.queued_label_id
    if message.kind is DeliveryKind.RESULT and queued in _labels(scene):
        found += await _unlabel(trello, message.target, str(queued))
    return found


async def _move(trello: Trello, config: BoardConfig, card: str, to: str) -> list[str]:
    """Move a card, if people would see it there: what is in an archived list is out of sight."""
    try:
        place = await trello.get(f"/lists/{to}", fields=["closed", "idBoard"])
        if place.get("closed") or place.get("idBoard") != config.board_id:
            what = "archived" if place.get("closed") else "on another board"
            return [f"board {config.name!r}: its list {to} is {what}; cards are not moved there"]
        await trello.put(f"/cards/{card}/idList", value=to)
    except Failure as error:
        return _note(error, f"board {config.name!r}: a card was not moved to its list {to}")
    return []


async def _unlabel(trello: Trello, card: str, label: str) -> list[str]:
    try:
        await trello.delete(f"/cards/{card}/idLabels/{label}")
    except Failure as error:
        return _note(error, f"the label {label} stays on card {card}")
    return []


def _labels(scene: CardContext) -> list[str]:
    labels = scene.card.get("idLabels")
    return [str(one) for one in labels] if isinstance(labels, list) else []


def _note(error: Failure, what: str) -> list[str]:
    """Return what is wrong for good; raises what may be over later."""
    if classify(error) is not ErrorClass.PERMANENT:
        raise error
    return [f"{what}: {error}"]
