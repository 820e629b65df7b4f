"""Session of a user: services and settings that all screens share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftsman.errors import ConfigError, DatabaseUnreachable
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.questions.key_guard import KeyGuard
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.command import CommandSet
    from draftsman_tui.dashboard.frame.refresher import Refresher
    from draftsman_tui.dashboard.questions.undo_window import UndoWindow
    from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses

    Connect = Callable[[], Awaitable[tuple[Runtime, Actor]]]
    """Connects the services for a user; raises DatabaseUnreachable."""


@dataclass(slots=True)
class Session:
    """User, services and settings shared by all screens.

    The screens are drawn before the services are connected.
    """

    refresher: Refresher
    undo: UndoWindow
    commands: CommandSet
    server: str
    """Database server for display, without credentials."""
    read_only: bool
    supervised: SupervisedProcesses | None = None
    """Processes that `draftsman up` started with this dashboard."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Remapped keys by command."""
    preferences: Preferences = field(default_factory=Preferences)
    history: dict[str, list[str]] = field(default_factory=dict)
    """Input history, by `:` and `/`."""
    key_guard: KeyGuard = field(default_factory=KeyGuard)
    """Recorder of the keys, so that a held key decides a single question."""
    is_reviewing: bool = False
    """Whether a review runs: a key between two of its questions does not act on the table."""
    _connected: tuple[Runtime, Actor] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the services are connected."""
        return self._connected is not None

    @property
    def rt(self) -> Runtime:
        """The services; raises DatabaseUnreachable until they are connected."""
        return self._connection[0]

    @property
    def actor(self) -> Actor:
        """The user; raises DatabaseUnreachable until the services are connected."""
        return self._connection[1]

    def connect(self, rt: Runtime, actor: Actor) -> None:
        """Set the connected services and their user."""
        self._connected = rt, actor

    def views(self) -> dict[str, View]:
        """Return the saved views; only the built-in views if the file cannot be read."""
        try:
            return self.preferences.views()
        except ConfigError:
            return dict(BUILTIN_VIEWS)

    @property
    def _connection(self) -> tuple[Runtime, Actor]:
        if self._connected is None:
            raise DatabaseUnreachable(f"not connected to {self.server} yet; try again later")
        return self._connected
