"""Writes the table of commands in docs/dashboard.md from the table of the dashboard.

python -m tests.docs.dashboard
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman_tui.dashboard.command import DashboardCommand
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.views import OWN_TABLES, VIEWS
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "dashboard.md"


def page(text: str) -> str:
    """Return the page with a current table."""
    return filled(text, _table())


def _table() -> Iterator[str]:
    yield "| command | keys | action | where |"
    yield "|---|---|---|---|"
    listed = VIEWS.keys() - OWN_TABLES
    for command in COMMANDS:
        if command.name in listed:
            continue
        keys = " ".join(f"`{display_key(key)}`" for key in command.keys.split(",") if key)
        takes = command.takes.replace("|", "\\|")
        name = f"{command.name} {takes}".strip()
        yield f"| `{name}` | {keys} | {command.help} | {_where(command)} |"
    yield "| `NAME FILTER` |  | Another list of the command line, such as `limits`. | everywhere |"


def _where(command: DashboardCommand) -> str:
    if command.on is None:
        return "everywhere"
    if command.on >= set(VIEWS):
        return "every table"
    return ", ".join(name for name in (*VIEWS, "job") if name in command.on)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
