"""Trello boards, of which there are few, and labels observed on their cards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.deliveries.store import threads
from draftsman_bots.trello.records import store as trello
from draftsman_bots.trello.records.board import (
    BoardConfig,
    Episode,
    EpisodeStage,
    LabelRule,
    LabelSighting,
)
from draftsman_bots.trello.records.cards import CardChecklist, CardDueDate
from tests.soak.calls.call import MIDDLE, NEWEST, OLDEST, Call

BOARD = "b" * 24
CARD = "c" * 24
LABEL = "a" * 24
NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
SEEN: Final = [LabelSighting(CARD, LABEL, NOW), LabelSighting("d" * 24, LABEL)]
EPISODE: Final = Episode(CARD, LABEL, BOARD, 1, True, EpisodeStage.PENDING, None, None, NOW)
CONFIG: Final = BoardConfig(board_id=BOARD, name="Work", labels={LABEL: LabelRule(name="do")})
ITEMS: Final = CardChecklist(CARD, MIDDLE, 1, LABEL, {"e" * 24: 1})
DUE: Final = CardDueDate(CARD, BOARD, None, NOW, None)
CALLS: Final[dict[str, Call]] = {
    "trello.boards": Call(trello.boards),
    "trello.clock": Call(trello.clock),
    "trello.digest_cards": Call(lambda conn: trello.digest_cards(conn, [NEWEST, OLDEST])),
    "trello.board": Call(lambda conn: trello.board(conn, BOARD)),
    "trello.save": Call(lambda conn: trello.save(conn, CONFIG)),
    "trello.remove": Call(lambda conn: trello.remove(conn, BOARD)),
    "trello.webhook": Call(lambda conn: trello.webhook(conn, BOARD, CARD)),
    "trello.present": Call(lambda conn: trello.present(conn, BOARD)),
    "trello.present_on": Call(lambda conn: trello.present_on(conn, [CARD])),
    "trello.begin_episodes": Call(lambda conn: trello.begin_episodes(conn, BOARD, SEEN, NOW)),
    "trello.name_member": Call(lambda conn: trello.name_member(conn, CARD, LABEL, "e" * 24)),
    "trello.end_episodes": Call(lambda conn: trello.end_episodes(conn, SEEN, NOW)),
    "trello.end_removed_episode": Call(
        lambda conn: trello.end_removed_episode(conn, CARD, LABEL, NOW)
    ),
    "trello.baseline": Call(lambda conn: trello.baseline(conn, BOARD, SEEN, NOW, NOW)),
    "trello.cursor": Call(lambda conn: trello.cursor(conn, BOARD)),
    "trello.advance": Call(lambda conn: trello.advance(conn, BOARD, NOW)),
    "trello.due": Call(lambda conn: trello.due(conn, BOARD, 50)),
    "trello.due_on": Call(lambda conn: trello.due_on(conn, CARD)),
    "trello.settle": Call(lambda conn: trello.settle(conn, EPISODE, EpisodeStage.SUBMITTED, 1)),
    "trello.end_swapped_episode": Call(lambda conn: trello.end_swapped_episode(conn, EPISODE)),
    "trello.checklist": Call(lambda conn: trello.checklist(conn, CARD, 1, 1)),
    "trello.find_checklist": Call(lambda conn: trello.find_checklist(conn, LABEL)),
    "trello.save_checklist": Call(lambda conn: trello.save_checklist(conn, ITEMS)),
    "trello.close_checklist": Call(lambda conn: trello.close_checklist(conn, CARD, 1, 1)),
    "trello.expiring": Call(lambda conn: trello.expiring(conn, CARD)),
    "trello.due_date": Call(lambda conn: trello.due_date(conn, CARD)),
    "trello.stale_due_dates": Call(lambda conn: trello.stale_due_dates(conn, BOARD, 20)),
    "trello.add_due_date": Call(lambda conn: trello.add_due_date(conn, DUE)),
    "trello.change_due_date": Call(lambda conn: trello.change_due_date(conn, DUE, DUE)),
    "trello.remove_due_date": Call(lambda conn: trello.remove_due_date(conn, DUE)),
    "threads.place: a card": Call(lambda conn: threads.place(conn, "trello", CARD)),
    "threads.is_own_message": Call(
        lambda conn: threads.is_own_message(conn, "trello", f"{CARD}/{LABEL}")
    ),
}
