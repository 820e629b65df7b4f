"""Archived months of events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Archive:
    """An archived month: its file, and the cursor of its last event (None: no events)."""

    month: date
    events: int
    sha256: str
    host: str
    path: str
    archived_at: datetime
    last_epoch: int | None
    last_txid: int | None
    last_id: int | None


@dataclass(frozen=True, slots=True)
class JobArchive:
    """An archived month, with the number of events of a job in it."""

    month: date
    events: int
    host: str
    path: str
