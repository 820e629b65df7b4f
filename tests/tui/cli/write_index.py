"""Writes the index of the commands from the modules that declare them, and the man page.

python -m tests.tui.cli.write_index
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from draftsman_tui import cli
from draftsman_tui.cli.app import REGISTRY
from draftsman_tui.cli.command_index import FILE
from draftsman_tui.cli.main import channel_commands
from tests.docs.man_page import PAGE, man_page


def declared() -> list[str]:
    """Return a row for each command, by name: name, module, section and summary."""
    for module in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}."):
        import_module(module.name)
    of_channels = channel_commands()
    return sorted(
        "\t".join(
            (name, command.callback.__module__, section, (command.help or "").splitlines()[0])
        )
        for section, commands in REGISTRY.items()
        for name, command in commands.items()
        if command.callback is not None and name not in of_channels
    )


if __name__ == "__main__":
    FILE.write_text("\n".join([*declared(), ""]), encoding="utf-8")
    PAGE.write_text(man_page(), encoding="utf-8")
