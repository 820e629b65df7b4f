"""The time zone in which times are shown and typed: local on terminals, UTC in programs.

The readers of a service are elsewhere: its times are in the zone of the only reader, if it is a
person, else in that of the configuration (`Policy.zone_of`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final

SHOWN_ZONE: Final[ContextVar[tzinfo | None]] = ContextVar("shown_zone", default=UTC)
"""None: the zone of this machine, which commands and the dashboard use, except with `--utc`."""


@contextmanager
def shown_in(zone: tzinfo) -> Iterator[None]:
    """Show times in a zone within the block."""
    token = SHOWN_ZONE.set(zone)
    try:
        yield
    finally:
        SHOWN_ZONE.reset(token)


def shown(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a time in a zone, by default that of shown times."""
    return moment.astimezone(zone or SHOWN_ZONE.get())


def typed(moment: datetime) -> datetime:
    """Return a time that a person typed; without an offset, it is in the zone of shown times."""
    if moment.tzinfo is not None:
        return moment
    zone = SHOWN_ZONE.get()
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


_OFFSETS: Final = re.compile(r"(<[+\w-]+>|[A-Za-z]{3,})[+-]?\d")
"""The beginning of a `TZ` that has offsets in place of a name: `CET-1CEST`."""


def unknown_zone() -> str:
    """Return the name in `TZ` if no time zone has it; the system then takes UTC without a word."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name or name.startswith("/") or _OFFSETS.match(name):
        return ""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return name
    return ""


def local_zone() -> tzinfo | None:
    """Return what `SHOWN_ZONE` is on a terminal: UTC, which has a name, for an unknown `TZ`."""
    return UTC if unknown_zone() else None
