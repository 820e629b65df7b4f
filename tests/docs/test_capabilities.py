"""The table of capabilities names commands, options and pages that exist."""

from __future__ import annotations

import re
import shlex
from typing import Final

import click

from draftsman_tui.cli import main
from tests.docs.pages import DOCS

ROW: Final = re.compile(r"\| ([^|`]+) \| `draftsman ([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \|")


def _rows() -> list[tuple[str, str, str]]:
    lines = (DOCS / "capabilities.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| Command |" not in line]
    matches = [ROW.fullmatch(row) for row in rows]
    assert all(matches), [row for row, match in zip(rows, matches, strict=True) if not match]
    return [(match[1], match[2], match[3]) for match in matches if match]


def problem(line: str) -> str | None:
    """Return an unknown word of a command line."""
    context = click.Context(main.cli)
    command: click.Command = main.cli
    for word in shlex.split(line):
        if isinstance(command, click.Group):
            subcommand = command.get_command(context, word)
            if subcommand is None:
                return word
            command = subcommand
        elif word.startswith("-"):
            options = {name for param in command.params for name in param.opts}
            if word not in options:
                return word
    return None


def test_each_row_names_a_command_and_a_page() -> None:
    rows = _rows()
    assert len({name for name, _, _ in rows}) == len(rows) == 86
    problems = [(line, word) for _, line, _ in rows if (word := problem(line))]
    assert problems == []
    assert [page for _, _, page in rows if not (DOCS / page).is_file()] == []


def test_an_unknown_command_or_option_is_found() -> None:
    assert problem("jobs --status failed") is None
    assert problem("jobs --stat failed") == "--stat"
    assert problem("repos profile NAME") == "profile"
