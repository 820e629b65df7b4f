"""What a board's labels would do now: which cards make jobs, and which are left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftsman_bots.trello.parsers.actions import card_label_ids
from draftsman_bots.trello.usecases import board_reader, label_jobs

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext


@dataclass(frozen=True, slots=True)
class LabelPreview:
    """A label: how many cards with it make a job soon, and how many do not.

    `known` were there before, or have their job; `ignored` are in lists that do not count.
    """

    label: str
    name: str
    mode: str
    agent: str | None
    jobs: int
    known: int
    ignored: int


async def preview_labels(desk: BotContext, board: BoardConfig) -> list[LabelPreview]:
    """Look at a board's cards as the poller would, and keep nothing; raises Failure."""
    cards = await board_reader.cards(desk.trello, board.board_id)
    begun = await desk.rt.boards.cursor(board.board_id) is not None
    seen = await desk.rt.boards.present_on(sorted(cards))
    found = []
    for label, rule in board.labels.items():
        there = [id for id, card in cards.items() if label in card_label_ids(card)]
        counted = [id for id in there if label_jobs.is_on_board(board, cards[id])]
        old = [id for id in counted if (id, label) in seen]
        if not begun and not board.take_existing:
            old = counted
        soon, skipped = len(counted) - len(old), len(there) - len(counted)
        what = (label, rule.name, str(rule.mode), rule.agent)
        found.append(LabelPreview(*what, jobs=soon, known=len(old), ignored=skipped))
    return found
