"""Index of the commands: module, section and summary of each, without an import of the module.

After a change of these in a module, `python -m tests.tui.cli.write_index` writes the index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from draftsman_tui.cli.app import Section

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
        name: IndexedCommand(module, Section(section), summary)
        for name, module, section, summary in rows
    }
    order = list(Section)
    return dict(sorted(commands.items(), key=lambda item: (order.index(item[1].section), item[0])))
