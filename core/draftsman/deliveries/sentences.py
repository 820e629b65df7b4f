"""Sentences of the database about deliveries and targets."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "add_target": "a target can be added only with a request, in its own thread",
    "target_size": "a target of this size cannot be stored",
    "redeliver": "{actor} may not redeliver",
    "sent_immutable": "a sent delivery is immutable",
    "deliveries_kept": "deliveries are never deleted",
}
