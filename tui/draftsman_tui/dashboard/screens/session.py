"""Session of a user: services and settings that all screens share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftsman.errors import ConfigError
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, View

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.polling.refresher import Refresher
    from draftsman_tui.dashboard.supervised import SupervisedProcesses


@dataclass(frozen=True, slots=True)
class Session:
    """User, services and settings shared by all screens."""

    rt: Runtime
    actor: Actor
    refresher: Refresher
    read_only: bool
    supervised: SupervisedProcesses | None = None
    """Processes that `draftsman up` started with this dashboard."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Remapped keys by command."""
    preferences: Preferences = field(default_factory=Preferences)
    history: dict[str, list[str]] = field(default_factory=dict)
    """Input history, by `:` and `/`."""

    def views(self) -> dict[str, View]:
        """Return the saved views; only the built-in views if the file cannot be read."""
        try:
            return self.preferences.views()
        except ConfigError:
            return dict(BUILTIN_VIEWS)
