"""Events: the append-only history of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from draftsman.text import STORED_SENTENCE

PAGE_SIZE: Final = 200
"""Default number of events, or runs, of a page."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the view `events`."""

    job: int
    id: int
    run: int | None
    kind: str
    from_status: str | None
    to_status: str | None
    actor: str
    payload: dict[str, Any] = field(metadata=STORED_SENTENCE)
    created_at: datetime
    epoch: int
    txid: int

    @property
    def cursor(self) -> tuple[int, int, int]:
        """Position of the event in the feed of all jobs."""
        return self.epoch, self.txid, self.id
