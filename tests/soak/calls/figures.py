"""Views and acknowledgments of questions, and the figures of people's time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.attention.pager_event import PagerEvent
from draftsman.attention.store import acknowledgments, figures
from draftsman.ids import new_id
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from tests.soak.calls.call import NEWEST, Call, last_of

ANNA: Final = Actor(Source.CLI, "anna", "Anna")
PAGE: Final = 500
WHY: Final = "the newest questions, with the deliveries and answers of each"
OPEN: Final = last_of("waiting_for_input")
PAGE_EVENT: Final = PagerEvent(
    "ops", "event", new_id(), 1, "acknowledged", datetime(2026, 1, 1, tzinfo=UTC)
)
CALLS: Final[dict[str, Call]] = {
    "figures.record_views": Call(lambda conn: figures.record_views(conn, [(NEWEST, 1)], ANNA)),
    "acknowledgments.acknowledge": Call(
        lambda conn: acknowledgments.acknowledge(conn, OPEN, 1, ANNA, 60)
    ),
    "acknowledgments.paged": Call(lambda conn: acknowledgments.paged(conn, new_id(), 1)),
    "acknowledgments.record_page": Call(
        lambda conn: acknowledgments.record_page(conn, OPEN, 1, PAGE_EVENT)
    ),
    "acknowledgments.snooze": Call(lambda conn: acknowledgments.snooze(conn, OPEN, 1, ANNA, 60)),
    "acknowledgments.delays": Call(lambda conn: acknowledgments.delays(conn, OPEN, 1)),
    "figures.figures": Call(lambda conn: figures.figures(conn, 1e9, PAGE), 20 * PAGE, WHY),
    "figures.interruptions": Call(
        lambda conn: figures.interruptions(conn, 1e9, PAGE), 20 * PAGE, WHY
    ),
}
