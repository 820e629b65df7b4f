"""The last line: keys of commands, to be pressed or clicked; grey where somebody may not.

One line of text, made anew only where it differs: Textual's footer is a widget for each key, which
made half of what it cost to move the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

Item = tuple[str, str, bool]
"""A key, the name of its command, and whether that may be done."""


class KeyBar(Static):
    """Most of what can be done here."""

    _items: Sequence[Item] = ()

    def show(self, items: Sequence[Item]) -> None:
        """Show these."""
        if items != self._items:
            self._items = items
            self.update(Content("  ").join(map(_said, items)), layout=False)


def _said(item: Item) -> Content:
    key, name, allowed = item
    if not allowed:
        return Content.from_markup("[dim]$key $name[/dim]", key=key, name=name)
    action = f"[@click=screen.command('{name}')]"
    return Content.from_markup(f"[bold $accent]$key[/] {action}$name[/]", key=key, name=name)
