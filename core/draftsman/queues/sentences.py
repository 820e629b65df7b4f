"""Sentences of the database about queues and limits."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "reserved_for": "for D-{job}",
    "reserved_by": "of D-{job}",
    "change_limits": "{actor} may not change limits",
    "control": "{actor} may not control the queue {queue}",
    "changes_append_only": "changes of queues are append-only",
}
