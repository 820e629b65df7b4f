"""Writes the table of commands of docs/dashboard.md from the one that the dashboard has.

python -m tests.docs.dashboard
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.views import VIEWS
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "dashboard.md"


def page(text: str) -> str:
    """Return the page with its table made anew."""
    return filled(text, _table())


def _table() -> Iterator[str]:
    yield "| command | keys | action | where |"
    yield "|---|---|---|---|"
    for one in COMMANDS:
        keys = " ".join(f"`{display_key(key)}`" for key in one.keys.split(",") if key)
        takes = one.takes.replace("|", "\\|")
        yield f"| `{f'{one.name} {takes}'.strip()}` | {keys} | {one.help} | {_where(one)} |"


def _where(one: DashboardCommand) -> str:
    if one.on is None:
        return "everywhere"
    if one.on >= set(VIEWS):
        return "every table"
    return ", ".join(name for name in (*VIEWS, "job") if name in one.on)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
