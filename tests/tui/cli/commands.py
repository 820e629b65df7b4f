"""All commands of the command line, for tests of each."""

from __future__ import annotations

from collections.abc import Iterator

import click

from draftsman_tui.cli import main

Words = tuple[str, ...]


def commands(
    group: click.Group = main.cli, words: Words = ()
) -> Iterator[tuple[Words, click.Command]]:
    """Yield each command that is no group, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif command is not None:
            yield (*words, name), command
