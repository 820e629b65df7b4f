"""Sentences of the database about events of forges."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "author": "{role} cannot store events of {source}:{author}",
    "workers_send_events": "only workers send events of forges to jobs",
    "bots_finish_events": "{role} processes no events of forges",
    "event_immutable": "an event of a forge is immutable",
    "events_kept": "events of forges are never deleted",
}
