"""The application: themes, the palette, one screen with everything else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.screen import Screen

from draftsman_tui.dashboard.commands import COMMANDS
from draftsman_tui.dashboard.screens.main import MainScreen
from draftsman_tui.dashboard.themes import THEMES

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman.runtime import Runtime


class Dashboard(App[None]):
    """Lives as long as somebody looks."""

    TITLE = "draftsman"
    CSS_PATH = "dashboard.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        rt: Runtime,
        actor: Actor,
        *,
        read_only: bool = False,
        view: str = "jobs",
        theme: str = "dark",
    ) -> None:
        super().__init__()
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme
        self.main = MainScreen(rt, actor, read_only=read_only, view=view)

    def on_mount(self) -> None:
        """Show the screen."""
        self.push_screen(self.main)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer every command in the palette, while the table is in view."""
        if screen is self.main:
            for command in COMMANDS:
                yield SystemCommand(command.name, command.help, partial(self.main.do, command))
