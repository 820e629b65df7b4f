"""Clock of the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """The local clock, corrected by its measured skew."""

    def __init__(self) -> None:
        self.skew = 0.0
        """Seconds that the local clock is ahead of the database's."""

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return datetime.now(UTC) - timedelta(seconds=self.skew)
