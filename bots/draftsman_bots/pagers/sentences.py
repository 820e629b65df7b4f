"""Sentences of the database about events of pagers."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "record": "{role} cannot record events of pagers",
    "event_kept": "an event of a pager is kept",
}
