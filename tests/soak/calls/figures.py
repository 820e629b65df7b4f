"""Views and acknowledgments of questions, and the figures of people's time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.attention import store as attention
from draftsman.ids import new_id
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman_bots.pagers.records import store as pagers
from draftsman_bots.pagers.records.pager_event import PagerEvent
from tests.soak.calls.call import NEWEST, Call, last_of

ANNA: Final = Actor(Source.CLI, "anna", "Anna")
PAGE: Final = 500
WHY: Final = "the newest questions, with the deliveries and answers of each"
OPEN: Final = last_of("waiting_for_input")
PAGE_EVENT: Final = PagerEvent(
    "ops", "event", new_id(), 1, "acknowledged", datetime(2026, 1, 1, tzinfo=UTC)
)
CALLS: Final[dict[str, Call]] = {
    "attention.record_views": Call(lambda conn: attention.record_views(conn, [(NEWEST, 1)], ANNA)),
    "attention.acknowledge": Call(lambda conn: attention.acknowledge(conn, OPEN, 1, ANNA, 60)),
    "pagers.question": Call(lambda conn: pagers.question(conn, new_id(), 1)),
    "pagers.record": Call(lambda conn: pagers.record(conn, OPEN, 1, PAGE_EVENT)),
    "attention.snooze": Call(lambda conn: attention.snooze(conn, OPEN, 1, ANNA, 60)),
    "attention.delays": Call(lambda conn: attention.delays(conn, OPEN, 1)),
    "attention.figures": Call(lambda conn: attention.figures(conn, 1e9, PAGE), 20 * PAGE, WHY),
    "attention.interruptions": Call(
        lambda conn: attention.interruptions(conn, 1e9, PAGE), 20 * PAGE, WHY
    ),
}
