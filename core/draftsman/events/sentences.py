"""Sentences of the database about events."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "recent_month": "only months that ended more than a month ago can be archived",
    "append_only": "events are append-only",
}
