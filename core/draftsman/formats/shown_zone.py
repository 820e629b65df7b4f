"""The time zone in which times are shown and typed: local on terminals, UTC in services.

The readers of a service are elsewhere: chats and pages show its times in the zone of the reader
where they know it.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final

SHOWN_ZONE: Final[ContextVar[tzinfo | None]] = ContextVar("shown_zone", default=UTC)
"""None: the zone of this machine, which commands and the dashboard use, except with `--utc`."""


def shown(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a time in a zone, by default that of shown times."""
    return moment.astimezone(zone or SHOWN_ZONE.get())


def typed(moment: datetime) -> datetime:
    """Return a time that a person typed; without an offset, it is in the zone of shown times."""
    if moment.tzinfo is not None:
        return moment
    zone = SHOWN_ZONE.get()
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
