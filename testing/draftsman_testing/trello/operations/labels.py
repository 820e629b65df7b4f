"""Labels on cards."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman_testing.trello.action_log import of_card, of_label, record
from draftsman_testing.trello.api_errors import ApiError, invalid_value, not_found
from draftsman_testing.trello.entities import Card, Label
from draftsman_testing.trello.operations import boards
from draftsman_testing.trello.world import World, known


def check(world: World, board: str, ids: Sequence[str]) -> None:
    """Refuse labels that the board does not have."""
    if any(known(world.labels, id).board != board for id in ids):
        raise invalid_value("idLabels")


def put(world: World, card_id: str, label_id: str, by: str) -> Card:
    """Put a label on a card. The words of the refusals are from memory."""
    card = world.cards[card_id]
    label = known(world.labels, label_id)
    if label.board != card.board:
        raise invalid_value("value")
    if label.id in card.labels:
        raise ApiError(400, "that label is already on the card")
    card.labels.append(label.id)
    say(world, "addLabelToCard", card, label, by)
    return card


def take(world: World, card_id: str, label_id: str, by: str) -> Card:
    """Remove a label from a card; the 404 for a label that is not on it is from memory."""
    card = world.cards[card_id]
    label = known(world.labels, label_id)
    if label.id not in card.labels:
        raise not_found()
    card.labels.remove(label.id)
    say(world, "removeLabelFromCard", card, label, by)
    return card


def say(world: World, kind: str, card: Card, label: Label, by: str) -> None:
    """Record a label action."""
    data = of_card(world, card, listed=False, label=of_label(label), text=label.name)
    record(world, kind, by, data if label.color is None else data | {"value": label.color})


def on_board(world: World, ids: Sequence[str], board: str, by: str) -> list[str]:
    """Return the labels of a board that stand for these of another."""
    label_ids = []
    for label in [world.labels[id] for id in ids]:
        matches = [
            candidate
            for candidate in world.labels.values()
            if (candidate.board, candidate.name, candidate.color)
            == (board, label.name, label.color)
        ]
        match = (
            matches[0] if matches else boards.add_label(world, board, label.name, label.color, by)
        )
        label_ids.append(match.id)
    return label_ids
