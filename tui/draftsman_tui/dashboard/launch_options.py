"""Launch options of the dashboard: command line, then configuration, then preferences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from textual.binding import Binding

from draftsman.errors import ConfigError, UsageError
from draftsman.formats.near_names import near_or_all
from draftsman.settings.dashboard import DashboardSettings
from draftsman_tui.dashboard import key_map
from draftsman_tui.dashboard.attention.alerts import KINDS
from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.own_commands import own_commands
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View
from draftsman_tui.dashboard.themes import NAMES
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.cursor_list import CursorList
from draftsman_tui.dashboard.widgets.table import ResourceTable


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Initial table or saved view, theme and remapped keys."""

    view: str | tuple[str, View] = "jobs"
    theme: str = "dark"
    keys: Mapping[str, str] = field(default_factory=dict)
    own: Sequence[DashboardCommand] = ()
    """Commands of the configuration."""
    alerts: Collection[str] = KINDS
    """Kinds of terminal alerts about questions for the user."""
    undo: float = 10.0
    """Seconds in which an answer, a decision or a cancel can be undone; 0: not at all."""


def resolve_options(
    settings: DashboardSettings,
    view: str | None = None,
    theme: str | None = None,
) -> LaunchOptions:
    """Resolve the options; raises ConfigError or UsageError."""
    preferences = Preferences()
    chosen = (
        theme
        or settings.theme
        or (preferences.theme if preferences.theme in NAMES else None)
        or "dark"
    )
    own = own_commands(settings.commands, COMMANDS)
    keys = keymap(settings)
    return LaunchOptions(
        view=_view(preferences, settings, view),
        theme=chosen,
        keys=keys,
        own=own,
        alerts=settings.alerts,
    )


def keymap(settings: DashboardSettings) -> dict[str, str]:
    """Return the remapped keys and those of own commands; raises ConfigError."""
    defaults = {**COMMANDS.default_keys(), **_table_keys()}
    own = {name: command.key for name, command in settings.commands.items() if command.key}
    return key_map.validate_keys(
        {**settings.keys, **own},
        {**defaults, **{name: key_map.DefaultKeys(()) for name in own}},
        own,
    )


def _table_keys() -> dict[str, key_map.DefaultKeys]:
    widgets = (CursorList, ResourceTable)
    bindings = (
        binding for widget in widgets for binding in widget.BINDINGS if isinstance(binding, Binding)
    )
    return {str(binding.id): key_map.DefaultKeys(binding.key.split(",")) for binding in bindings}


def _view(
    preferences: Preferences, settings: DashboardSettings, option: str | None
) -> str | tuple[str, View]:
    name = option or settings.view or "jobs"
    if name in VIEWS:
        return name
    views = (
        dict(BUILTIN_VIEWS)
        if name in BUILTIN_VIEWS and preferences.problems()
        else preferences.views()
    )
    if name in views:
        return name, views[name]
    names = [*VIEWS, *views]
    hint = near_or_all(name, names, "available", 1)
    text = f"unknown table or saved view {name!r}{hint}"
    raise UsageError(text) if option else ConfigError(f"[dashboard] view: {text}")
