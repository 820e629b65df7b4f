"""Views of questions, and the figures of people's time."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.store.attention import figures
from tests.soak.calls.call import NEWEST, Call

ANNA: Final = Actor(Source.CLI, "anna", "Anna")
PAGE: Final = 500
WHY: Final = "the newest questions, with the deliveries and answers of each"
CALLS: Final[dict[str, Call]] = {
    "figures.record_views": Call(lambda conn: figures.record_views(conn, [(NEWEST, 1)], ANNA)),
    "figures.figures": Call(lambda conn: figures.figures(conn, 1e9, PAGE), 20 * PAGE, WHY),
    "figures.reminders": Call(lambda conn: figures.reminders(conn, 1e9, PAGE), 20 * PAGE, WHY),
}
