"""Session of a user: connection and settings that all screens share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from draftsman.errors import ConfigError
from draftsman_tui.dashboard.command import CommandSet
from draftsman_tui.dashboard.frame.connection import Connection
from draftsman_tui.dashboard.frame.refresher import Refresher
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.questions.key_guard import KeyGuard
from draftsman_tui.dashboard.questions.undo_window import UndoWindow
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View
from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses


@dataclass(slots=True, kw_only=True)
class Session:
    """Connection and settings shared by all screens."""

    connection: Connection
    refresher: Refresher
    undo: UndoWindow
    commands: CommandSet
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

    def views(self) -> dict[str, View]:
        """Return the saved views; only the built-in views if the file cannot be read."""
        try:
            return self.preferences.views()
        except ConfigError:
            return dict(BUILTIN_VIEWS)
