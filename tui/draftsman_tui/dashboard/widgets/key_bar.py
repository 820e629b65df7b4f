"""Key bar: keys of commands, also clickable; denied commands are dimmed.

A single text, updated only on change. Textual's footer, with a widget for each key, caused half
of the cost of moving the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

Key = tuple[str, str, bool]
"""Label of the key, command name, and whether the command is permitted."""


class KeyBar(Static):
    """The bottom line of a screen."""

    _shown_keys: Sequence[Key] = ()

    def show(self, keys: Sequence[Key]) -> None:
        if keys != self._shown_keys:
            self._shown_keys = keys
            self.update(Content("  ").join(map(_key_content, keys)), layout=False)


def _key_content(key: Key) -> Content:
    label, name, allowed = key
    if not allowed:
        return Content.from_markup("[dim]$key $name[/dim]", key=label, name=name)
    action = f"[@click=screen.command('{name}')]"
    return Content.from_markup(f"[bold $accent]$key[/] {action}$name[/]", key=label, name=name)
