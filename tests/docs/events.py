"""Writes the table of docs/events.md from EVENTS.

python -m tests.docs.events
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.jobs.event_kinds import EVENTS
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "events.md"


def page(text: str) -> str:
    """Return the page with a current table."""
    return filled(text, _table())


def _table() -> Iterator[str]:
    yield "| event | written when | payload | writer |"
    yield "|---|---|---|---|"
    for kind, event in EVENTS.items():
        yield f"| `{kind}` | {event.text} | {event.payload} | {event.writer} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
