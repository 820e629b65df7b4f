"""Comparison of a board's cards with the labels that the database has for it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.domain.board import BoardConfig, Episode, Sighting
from draftsman_bots.trello import intake
from draftsman_bots.trello.ids import date
from draftsman_bots.trello.inbound import labels

if TYPE_CHECKING:
    from draftsman_bots.trello.desk import Desk
    from draftsman_bots.trello.reading import Card

Labeled = set[tuple[str, str]]
"""Pairs of card and label."""


def labeled(board: BoardConfig, cards: dict[str, Card]) -> list[Sighting]:
    """Return the configured labels on the cards of a board, without its ignored lists."""
    return [
        Sighting(id, label, date(card.get("dateLastActivity")))
        for id, card in cards.items()
        if intake.on_board(board, card)
        for label in sorted(board.labels.keys() & labels(card))
    ]


async def compare(
    desk: Desk, board: BoardConfig, cards: dict[str, Card], began: datetime
) -> tuple[list[Episode], Labeled]:
    """Record added and removed labels; return the new episodes and what was recorded before.

    `began` is the database's time before the cards were read.
    """
    boards, there = desk.rt.boards, labeled(board, cards)
    known = await boards.present(board.board_id)
    known |= await boards.present_on(sorted({seen.card for seen in there}))
    gone = [
        Sighting(card, label)
        for card, label in sorted(known)
        if card in cards and label not in labels(cards[card])
    ]
    await boards.vanished(gone, began)
    new = [seen for seen in there if (seen.card, seen.label) not in known]
    return await boards.appeared(board.board_id, new, began), known
