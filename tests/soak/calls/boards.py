"""Trello boards, of which there are few, and labels observed on their cards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.deliveries.store import threads
from draftsman.trello.board import (
    BoardConfig,
    Episode,
    EpisodeStage,
    LabelRule,
    LabelSighting,
)
from draftsman.trello.cards import CardChecklist, CardDueDate
from draftsman.trello.store import boards as trello_boards
from draftsman.trello.store import cards as trello_cards
from tests.soak.calls.call import MIDDLE, Call

BOARD = "b" * 24
CARD = "c" * 24
LABEL = "a" * 24
NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
SEEN: Final = [LabelSighting(CARD, LABEL, NOW), LabelSighting("d" * 24, LABEL)]
EPISODE: Final = Episode(CARD, LABEL, BOARD, 1, True, EpisodeStage.PENDING, None)
CONFIG: Final = BoardConfig(board_id=BOARD, name="Work", labels={LABEL: LabelRule(name="do")})
ITEMS: Final = CardChecklist(CARD, MIDDLE, 1, LABEL, {"e" * 24: 1})
DUE: Final = CardDueDate(CARD, BOARD, None, NOW, None)
CALLS: Final[dict[str, Call]] = {
    "trello_boards.listed": Call(trello_boards.listed),
    "trello_boards.of": Call(lambda conn: trello_boards.of(conn, BOARD)),
    "trello_boards.save": Call(lambda conn: trello_boards.save(conn, CONFIG)),
    "trello_boards.remove": Call(lambda conn: trello_boards.remove(conn, BOARD)),
    "trello_boards.webhook": Call(lambda conn: trello_boards.webhook(conn, BOARD, CARD)),
    "trello_boards.present": Call(lambda conn: trello_boards.present(conn, BOARD)),
    "trello_boards.present_on": Call(lambda conn: trello_boards.present_on(conn, [CARD])),
    "trello_boards.begin_episodes": Call(
        lambda conn: trello_boards.begin_episodes(conn, BOARD, SEEN, NOW)
    ),
    "trello_boards.end_episodes": Call(lambda conn: trello_boards.end_episodes(conn, SEEN, NOW)),
    "trello_boards.end_removed_episode": Call(
        lambda conn: trello_boards.end_removed_episode(conn, CARD, LABEL, NOW)
    ),
    "trello_boards.baseline": Call(
        lambda conn: trello_boards.baseline(conn, BOARD, SEEN, NOW, NOW)
    ),
    "trello_boards.cursor": Call(lambda conn: trello_boards.cursor(conn, BOARD)),
    "trello_boards.advance": Call(lambda conn: trello_boards.advance(conn, BOARD, NOW)),
    "trello_boards.due": Call(lambda conn: trello_boards.due(conn, BOARD, 50)),
    "trello_boards.due_on": Call(lambda conn: trello_boards.due_on(conn, CARD)),
    "trello_boards.settle": Call(
        lambda conn: trello_boards.settle(conn, EPISODE, EpisodeStage.SUBMITTED, 1)
    ),
    "trello_boards.end_swapped_episode": Call(
        lambda conn: trello_boards.end_swapped_episode(conn, EPISODE)
    ),
    "trello_cards.checklist": Call(lambda conn: trello_cards.checklist(conn, CARD, 1, 1)),
    "trello_cards.find_checklist": Call(lambda conn: trello_cards.find_checklist(conn, LABEL)),
    "trello_cards.save_checklist": Call(lambda conn: trello_cards.save_checklist(conn, ITEMS)),
    "trello_cards.close_checklist": Call(
        lambda conn: trello_cards.close_checklist(conn, CARD, 1, 1)
    ),
    "trello_cards.expiring": Call(lambda conn: trello_cards.expiring(conn, CARD)),
    "trello_cards.due_date": Call(lambda conn: trello_cards.due_date(conn, CARD)),
    "trello_cards.stale_due_dates": Call(
        lambda conn: trello_cards.stale_due_dates(conn, BOARD, 20)
    ),
    "trello_cards.add_due_date": Call(lambda conn: trello_cards.add_due_date(conn, DUE)),
    "trello_cards.change_due_date": Call(lambda conn: trello_cards.change_due_date(conn, DUE, DUE)),
    "trello_cards.remove_due_date": Call(lambda conn: trello_cards.remove_due_date(conn, DUE)),
    "threads.trello": Call(lambda conn: threads.trello(conn, CARD)),
    "threads.is_own_comment": Call(lambda conn: threads.is_own_comment(conn, f"{CARD}/{LABEL}")),
}
