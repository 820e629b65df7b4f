"""Command lines and logging of draftsman's own processes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from draftsman_tui.cli.app import App
from draftsman_tui.terminal.own_command import DRAFTSMAN_COMMAND

if TYPE_CHECKING:
    from draftsman.settings import Settings

_log = logging.getLogger(__name__)


def child(app: App, name: str) -> list[str]:
    """Return the command line of a draftsman subcommand, with the current global options."""
    config = ["--config", str(app.config.absolute())] if app.config else []
    return [*DRAFTSMAN_COMMAND, *config, *(["-v"] if app.verbose else []), name]


def set_up_log(app: App) -> None:
    """Log to stderr as configured, at level debug with -v."""
    from draftsman import log

    settings: Settings = app.settings
    level = {"level": "debug"} if app.verbose else {}
    log.setup(settings.log.model_copy(update=level))


def warn_of_variables(app: App) -> None:
    """Log a warning for each unknown `DRAFTSMAN_*` variable."""
    from draftsman.settings import unread_variables

    for unknown in unread_variables(app.settings):
        _log.warning("unknown environment variable %s; %s", unknown.name, unknown.hint)
