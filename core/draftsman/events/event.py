"""Events: the append-only history of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


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
    payload: dict[str, Any]
    created_at: datetime
    epoch: int
    txid: int

    @property
    def cursor(self) -> tuple[int, int, int]:
        """Position of the event in the feed of all jobs."""
        return self.epoch, self.txid, self.id
