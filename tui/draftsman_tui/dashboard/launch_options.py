"""What a dashboard begins with: the options, else the configuration, else what was chosen last."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.binding import Binding

from draftsman.errors import ConfigError, UsageError
from draftsman_tui.dashboard import key_map
from draftsman_tui.dashboard.command_table import default_keys
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, View
from draftsman_tui.dashboard.themes import NAMES
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.table import ResourceTable

if TYPE_CHECKING:
    from draftsman.settings import DashboardSettings


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The table or the saved view that comes first, the theme, the keys that are not our own."""

    view: str | tuple[str, View] = "jobs"
    theme: str = "dark"
    keys: Mapping[str, str] = field(default_factory=dict)


def resolve_options(
    settings: DashboardSettings, view: str | None = None, theme: str | None = None
) -> LaunchOptions:
    """Return it; raises ConfigError or UsageError in one line. `view`, `theme` are options."""
    kept = Preferences()
    chosen = theme or settings.theme or (kept.theme if kept.theme in NAMES else None) or "dark"
    mapped = keymap(settings)
    return LaunchOptions(_view(kept, settings, view), chosen, mapped)


def keymap(settings: DashboardSettings) -> dict[str, str]:
    """Return the keys that are mapped anew; raises ConfigError."""
    return key_map.validate_keys(settings.keys, {**default_keys(), **_moves()})


def _moves() -> dict[str, key_map.DefaultKeys]:
    bindings = (one for one in ResourceTable.BINDINGS if isinstance(one, Binding))
    return {str(one.id): key_map.DefaultKeys(one.key.split(",")) for one in bindings}


def _view(
    kept: Preferences, settings: DashboardSettings, option: str | None
) -> str | tuple[str, View]:
    name = option or settings.view or "jobs"
    if name in VIEWS:
        return name
    views = dict(BUILTIN_VIEWS) if name in BUILTIN_VIEWS and kept.problems() else kept.views()
    if name in views:
        return name, views[name]
    known = [*VIEWS, *views]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    text = f"there is no table and no saved view {name!r}; {hint}"
    raise UsageError(text) if option else ConfigError(f"[dashboard] view: {text}")
