"""Messages of the refresher: immutable values, of which a newer replaces an unread older."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from textual.message import Message

from draftsman_tui.dashboard.attention.attention import AttentionCount
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows


class LatestMessage(Message):
    """A message that replaces an unread message of its type."""

    def can_replace(self, message: Message) -> bool:
        return type(message) is type(self)


@dataclass
class RowsLoaded(LatestMessage):
    """Rows of a table were loaded."""

    resource: Resource[Any]
    query: Query
    rows: Rows[Any]


@dataclass
class StatsUpdated(LatestMessage):
    """Statistics were counted."""

    stats: DashboardStats
    at: float = field(default_factory=time.monotonic)


@dataclass
class AttentionUpdated(Message):
    """The questions that wait for the user were counted."""

    attention: AttentionCount


@dataclass
class ConnectionLost(LatestMessage):
    """The database is unreachable. Times are monotonic.

    The data shown was read at `read_at` (None: no data); the next attempt is at `retry_at`.
    """

    error: str
    retry_at: float
    read_at: float | None = None
    embedded: bool = False


class Reconnected(Message):
    """The database is reachable again."""


@dataclass
class LoadRejected(LatestMessage):
    """A load failed, for example because of an invalid filter."""

    error: str
