"""Command palette: the commands of a screen with their keys, found by name or by another word."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from draftsman_tui.common.synonyms import synonyms
from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.dialogs import HelpDialog
from draftsman_tui.dashboard.key_map import display_key

NAME_WIDTH: Final = 22
"""Cells of the name, after which the keys are aligned."""
BEGINNING: Final = 100.0
"""Score of a name that begins with the text; similar names have at most about the number of its
letters."""
SYNONYM: Final = 50.0
"""Score of another word for a command that begins with the text."""


class CommandProvider(Provider):
    """The commands that apply to the screen below the palette, also below the help."""

    async def discover(self) -> Hits:
        for screen, command in self._commands():
            run = partial(self._run, screen, command)
            text = _display(Content(command.name), command, screen)
            yield DiscoveryHit(text, run, command.name, escape(command.help))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        word = query.strip().casefold()
        for screen, command in self._commands():
            name = matcher.highlight(command.name)
            score = matcher.match(command.name)
            other = next((other for other in synonyms(command.name) if other.startswith(word)), "")
            if command.name.startswith(word):
                score += BEGINNING
            elif other:
                score = SYNONYM + (other == word)
                name = Content(f"{command.name} ({other})")
            if score > 0:
                text = _display(name, command, screen)
                run = partial(self._run, screen, command)
                yield Hit(score, text, run, command.name, escape(command.help))

    def _commands(self) -> Iterator[tuple[BaseScreen, DashboardCommand]]:
        """Yield the commands of the screen with it, in the order of the help."""
        screen = self.screen.below if isinstance(self.screen, HelpDialog) else self.screen
        if isinstance(screen, BaseScreen):
            yield from ((screen, command) for command in screen.commands if screen.is_here(command))

    def _run(self, screen: BaseScreen, command: DashboardCommand) -> None:
        """Run a command, in place of the help if that is open."""
        if isinstance(self.screen, HelpDialog):
            self.screen.dismiss(None)
        screen.run(command)


def _display(name: Content, command: DashboardCommand, screen: BaseScreen) -> Content:
    """Return a name with its keys behind it."""
    keys = " ".join(display_key(key) for key in screen.keys_of(command))
    blank = " " * max(1, NAME_WIDTH - name.cell_length)
    return Content.assemble(name, blank, (keys, "bold $accent")) if keys else name
