"""Key bar: keys of commands, also clickable; denied commands are dimmed.

A single text, updated only on change. Textual's footer, with a widget for each key, caused half
of the cost of moving the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

Item = tuple[str, str, bool]
"""Key, command name, and whether the command is permitted."""


class KeyBar(Static):
    """The bottom line of a screen."""

    _items: Sequence[Item] = ()

    def show(self, items: Sequence[Item]) -> None:
        if items != self._items:
            self._items = items
            self.update(Content("  ").join(map(_item_content, items)), layout=False)


def _item_content(item: Item) -> Content:
    key, name, allowed = item
    if not allowed:
        return Content.from_markup("[dim]$key $name[/dim]", key=key, name=name)
    action = f"[@click=screen.command('{name}')]"
    return Content.from_markup(f"[bold $accent]$key[/] {action}$name[/]", key=key, name=name)
