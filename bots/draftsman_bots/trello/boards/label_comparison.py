"""Comparison of a board's cards with the labels that the database has for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman_bots.trello.records.board import BoardConfig, Episode, LabelSighting
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import label_jobs

if TYPE_CHECKING:
    from trello import Card

    from draftsman_bots.trello.context import BotContext, Requested

Labeled = set[tuple[str, str]]
"""Pairs of card and label."""


def labeled(board: BoardConfig, cards: dict[str, Card]) -> list[LabelSighting]:
    """Return the configured labels on the cards of a board, without its ignored lists."""
    return [
        LabelSighting(id, label, card.dateLastActivity)
        for id, card in cards.items()
        if label_jobs.is_on_board(board, card)
        for label in sorted(board.labels.keys() & set(card.idLabels))
    ]


async def compare(
    context: BotContext,
    board: BoardConfig,
    cards: dict[str, Card],
    began: datetime,
    requested: Requested | None = None,
) -> tuple[list[Episode], Labeled]:
    """Record added and removed labels; return the new episodes and the labels recorded before.

    `began` is the database's time before the cards were read, `requested` has the people who added
    labels, as far as they are known.
    """
    boards = boards_of(context.rt)
    sightings = labeled(board, cards)
    recorded = await boards.present(board.board_id)
    recorded |= await boards.present_on(sorted({sighting.card for sighting in sightings}))
    removed = [
        LabelSighting(card, label)
        for card, label in sorted(recorded)
        if card in cards and label not in cards[card].idLabels
    ]
    await boards.end_episodes(removed, began)
    added = requested or {}
    new = [
        replace(sighting, by=by.id) if by is not None else sighting
        for sighting in sightings
        if (sighting.card, sighting.label) not in recorded
        for by in [added.get(sighting.card, {}).get(sighting.label)]
    ]
    return await boards.begin_episodes(board.board_id, new, began), recorded
