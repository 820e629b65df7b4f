"""Connection of the dashboard: the services, their user, and the clock of the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from draftsman.errors import DatabaseUnreachable
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime

Connect = Callable[[], Awaitable[tuple[Runtime, Actor]]]
"""Connects the services for a user; raises DatabaseUnreachable."""


class Connection:
    """Services and their user; the screens are drawn before they are connected."""

    def __init__(self, server: str) -> None:
        self.server = server
        """Database server for display, without credentials."""
        self._rt: Runtime | None = None
        self._actor: Actor | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the services are connected."""
        return self._rt is not None

    @property
    def rt(self) -> Runtime:
        """The services; raises DatabaseUnreachable until they are connected."""
        if self._rt is None:
            raise self._not_connected()
        return self._rt

    @property
    def actor(self) -> Actor:
        """The user; raises DatabaseUnreachable until the services are connected."""
        if self._actor is None:
            raise self._not_connected()
        return self._actor

    def connect(self, rt: Runtime, actor: Actor) -> None:
        """Set the connected services, which show what their user may see."""
        self._rt = rt.seen_by(actor)
        self._actor = actor

    def _not_connected(self) -> DatabaseUnreachable:
        return DatabaseUnreachable(f"not connected to {self.server} yet; try again later")


class DatabaseClock:
    """The local clock, corrected by its measured skew."""

    def __init__(self) -> None:
        self.skew = 0.0
        """Seconds that the local clock is ahead of the database's."""

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return datetime.now(UTC) - timedelta(seconds=self.skew)
