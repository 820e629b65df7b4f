"""Sentences of the database about queues and limits."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "change_limits": "{actor} may not change limits",
    "control": "{actor} may not control the queue {queue}",
    "changes_append_only": "changes of queues are append-only",
}
