"""Index of the commands: module, section and summary of each, without an import of the module.

After a change of these in a module, `python -m tests.tui.cli.write_index` writes the index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, cast

from draftsman_tui.cli.app import SECTIONS, Section

FILE: Final = Path(__file__).with_name("command_index.tsv")


class IndexedCommand(NamedTuple):
    """A command, as its module declares it."""

    module: str
    section: Section
    summary: str


def read() -> dict[str, IndexedCommand]:
    """Return the commands by name, in the order of the help."""
    rows = (row.split("\t") for row in FILE.read_text(encoding="utf-8").splitlines())
    commands = {
        name: IndexedCommand(module, cast("Section", section), summary)
        for name, module, section, summary in sorted(rows)
    }
    return {
        name: command
        for section in SECTIONS
        for name, command in commands.items()
        if command.section == section
    }
