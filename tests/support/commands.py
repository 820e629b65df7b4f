"""All commands of the command line, with those of channels."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

import click

from draftsman_tui.cli import command_index
from draftsman_tui.cli.app import REGISTRY
from draftsman_tui.cli.main import cli

PROGRAMS: Final = frozenset(
    name for name, command in command_index.read().items() if command.section == "Programs"
)
"""Commands that programs run, or in which they speak."""


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Yield the name of each command without subcommands, and the command."""
    for command in command_index.read().values():
        import_module(command.module)
    assert REGISTRY
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command_of_name = cli.get_command(context, name)
        assert command_of_name is not None
        yield from _leaves(name, command_of_name)


def _leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    for sub in command.commands:
        yield from _leaves(f"{name} {sub}", command.commands[sub])
