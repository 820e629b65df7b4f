"""Preview of the jobs that a board's labels would create."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftsman_bots.trello.boards import board_reader
from draftsman_bots.trello.requests import label_jobs

if TYPE_CHECKING:
    from draftsman.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext


@dataclass(frozen=True, slots=True)
class LabelPreview:
    """A label with the number of its cards that would create a job.

    `known` cards had the label before or have their job; `ignored` cards are in ignored lists.
    """

    label: str
    name: str
    mode: str
    agent: str | None
    template: str | None
    jobs: int
    known: int
    ignored: int


async def preview_labels(context: BotContext, board: BoardConfig) -> list[LabelPreview]:
    """Compare a board's cards as the poller does, without recording anything; raises Failure."""
    cards = await board_reader.cards(context.trello, board.board_id)
    was_polled = await context.rt.boards.cursor(board.board_id) is not None
    recorded = await context.rt.boards.present_on(sorted(cards))
    previews = []
    for label, rule in board.labels.items():
        labeled = [id for id, card in cards.items() if label in card.idLabels]
        counted = [id for id in labeled if label_jobs.is_on_board(board, cards[id])]
        old = [id for id in counted if (id, label) in recorded]
        if not was_polled and not board.include_existing:
            old = counted
        jobs, ignored = len(counted) - len(old), len(labeled) - len(counted)
        fields = (label, rule.name, str(rule.mode), rule.agent, rule.template)
        previews.append(LabelPreview(*fields, jobs=jobs, known=len(old), ignored=ignored))
    return previews
