"""Reservations of queues for jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

DEFAULT_SECONDS: Final = 600.0
"""Time after which a reservation expires unless the run of its job renews it."""
MIN_SECONDS: Final = 60.0
"""Shortest time: twice the interval of heartbeats."""
MAX_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class QueueReservation:
    """The reservation of a queue for a job: until its expiry, no other job is claimed.

    Each heartbeat of the job's run renews it for `seconds`.
    """

    queue: str
    job: int
    actor: str
    seconds: float
    reserved_at: datetime
    expires_at: datetime
