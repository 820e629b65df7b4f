"""What the live source says: values that nobody changes. Of several unread ones the last counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from draftsman_tui.dashboard.polling.dashboard_stats import DashboardStats
    from draftsman_tui.dashboard.resource import Query, Resource, Rows


class LatestMessage(Message):
    """A message that takes the place of an unread one of its kind."""

    def can_replace(self, message: Message) -> bool:
        """Return whether an earlier one is of no use any more."""
        return type(message) is type(self)


class RowsLoaded(LatestMessage):
    """Rows of a resource, as asked for."""

    def __init__(self, resource: Resource[Any], query: Query, rows: Rows[Any]) -> None:
        super().__init__()
        self.resource = resource
        self.query = query
        self.rows = rows


class StatsUpdated(LatestMessage):
    """What the strip shows."""

    def __init__(self, vitals: DashboardStats) -> None:
        super().__init__()
        self.at = time.monotonic()
        self.vitals = vitals


class ConnectionLost(LatestMessage):
    """The database is unreachable. Times are of the monotonic clock.

    What is shown was read at `read_at` (None: nothing was); the next try is at `retry_at`.
    `embedded`: it is the embedded database, which a command starts.
    """

    def __init__(
        self, error: str, retry_at: float, read_at: float | None = None, *, embedded: bool = False
    ) -> None:
        super().__init__()
        self.error = error
        self.retry_at = retry_at
        self.read_at = read_at
        self.embedded = embedded


class Reconnected(Message):
    """The database is there, again."""


class LoadRejected(LatestMessage):
    """A look that cannot be: the filter names what there is not."""

    def __init__(self, error: str) -> None:
        super().__init__()
        self.error = error
