"""Holidays of a calendar file, which a child process reads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from draftsman.calendars import calendar_reader
from draftsman.errors import Failure, UsageError

PAST: Final = timedelta(days=400)
AHEAD: Final = timedelta(days=800)
"""Times of the holidays that are read, around now."""
_log = logging.getLogger(__name__)


def holidays_of(path: Path, *, cpu: float = calendar_reader.CPU) -> Callable[[], frozenset[date]]:
    """Return a function that reads the days of a calendar file, again after it has changed.

    It keeps the days of a file that becomes unreadable; before, there are none. A file that cannot
    be read is not read again until it changes.
    """
    state: tuple[float, frozenset[date]] = (-1.0, frozenset())

    def days() -> frozenset[date]:
        nonlocal state
        try:
            changed_at = path.stat().st_mtime
        except OSError:
            return state[1]
        if changed_at != state[0]:
            state = changed_at, state[1]
            try:
                state = changed_at, _read(path, cpu)
            except (OSError, UsageError, Failure) as error:
                _log.warning("holidays of %s: %s", path, error)
        return state[1]

    return days


def _read(path: Path, cpu: float) -> frozenset[date]:
    """Return the days of a file; raises OSError, UsageError and Failure."""
    now = datetime.now(UTC)
    start = now - PAST
    end = now + AHEAD
    events = calendar_reader.read_calendar_blocking(
        path.read_bytes(), start, end, ZoneInfo("UTC"), cpu=cpu
    )
    first = start.toordinal()
    last = end.toordinal()
    ordinals = {
        day
        for event in events
        for day in range(max(first, event.whole_days.start), min(last + 1, event.whole_days.stop))
    }
    return frozenset(map(date.fromordinal, ordinals))
