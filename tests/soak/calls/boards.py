"""Boards of Trello, of which there are few, and what was seen on their cards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.domain.board import BoardConfig, Episode, LabelRule, Sighting, Stage
from draftsman.store import boards, threads
from tests.soak.calls.call import Call

BOARD, CARD, LABEL = "b" * 24, "c" * 24, "a" * 24
NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
SEEN: Final = [Sighting(CARD, LABEL, NOW), Sighting("d" * 24, LABEL)]
EPISODE: Final = Episode(CARD, LABEL, BOARD, 1, True, Stage.PENDING, None)
CONFIG: Final = BoardConfig(board_id=BOARD, name="Work", labels={LABEL: LabelRule(name="do")})
CALLS: Final[dict[str, Call]] = {
    "boards.listed": Call(boards.listed),
    "boards.of": Call(lambda conn: boards.of(conn, BOARD)),
    "boards.save": Call(lambda conn: boards.save(conn, CONFIG)),
    "boards.remove": Call(lambda conn: boards.remove(conn, BOARD)),
    "boards.webhook": Call(lambda conn: boards.webhook(conn, BOARD, CARD)),
    "boards.present": Call(lambda conn: boards.present(conn, BOARD)),
    "boards.present_on": Call(lambda conn: boards.present_on(conn, [CARD])),
    "boards.appeared": Call(lambda conn: boards.appeared(conn, BOARD, SEEN, NOW)),
    "boards.vanished": Call(lambda conn: boards.vanished(conn, SEEN, NOW)),
    "boards.taken_off": Call(lambda conn: boards.taken_off(conn, CARD, LABEL, NOW)),
    "boards.baseline": Call(lambda conn: boards.baseline(conn, BOARD, SEEN, NOW, NOW)),
    "boards.cursor": Call(lambda conn: boards.cursor(conn, BOARD)),
    "boards.advance": Call(lambda conn: boards.advance(conn, BOARD, NOW)),
    "boards.due": Call(lambda conn: boards.due(conn, BOARD, 50)),
    "boards.due_on": Call(lambda conn: boards.due_on(conn, CARD)),
    "boards.settle": Call(lambda conn: boards.settle(conn, EPISODE, Stage.SUBMITTED, 1)),
    "boards.swapped": Call(lambda conn: boards.swapped(conn, EPISODE)),
    "threads.trello": Call(lambda conn: threads.trello(conn, CARD)),
    "threads.trello_own": Call(lambda conn: threads.trello_own(conn, f"{CARD}/{LABEL}")),
}
