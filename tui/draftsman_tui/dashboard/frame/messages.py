"""Messages of the refresher: immutable values, of which a newer replaces an unread older."""

from __future__ import annotations

import time
from typing import Any

from textual.message import Message

from draftsman_tui.dashboard.attention.attention import AttentionCount
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows


class LatestMessage(Message):
    """A message that replaces an unread message of its type."""

    def can_replace(self, message: Message) -> bool:
        return type(message) is type(self)


class RowsLoaded(LatestMessage):
    """Rows of a table were loaded."""

    def __init__(self, resource: Resource[Any], query: Query, rows: Rows[Any]) -> None:
        super().__init__()
        self.resource = resource
        self.query = query
        self.rows = rows


class StatsUpdated(LatestMessage):
    """Statistics were counted."""

    def __init__(self, stats: DashboardStats) -> None:
        super().__init__()
        self.at = time.monotonic()
        self.stats = stats


class AttentionUpdated(Message):
    """The questions that wait for the user were counted."""

    def __init__(self, attention: AttentionCount) -> None:
        super().__init__()
        self.attention = attention


class ConnectionLost(LatestMessage):
    """The database is unreachable. Times are monotonic.

    The data shown was read at `read_at` (None: no data); the next attempt is at `retry_at`.
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
    """The database is reachable again."""


class LoadRejected(LatestMessage):
    """A load failed, for example because of an invalid filter."""

    def __init__(self, error: str) -> None:
        super().__init__()
        self.error = error
