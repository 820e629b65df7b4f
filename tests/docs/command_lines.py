"""The command lines of a page, parsed as the command line parses them."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Final

import click
from markdown_it import MarkdownIt

from draftsman.errors import UsageError
from draftsman_tui.cli import main
from draftsman_tui.cli.app import App

_MARKDOWN: Final = MarkdownIt()
_LANGUAGES: Final = ("", "sh", "bash")
_START: Final = re.compile(r"(?:^|[;&|] ?|\b[A-Z_]+=\S+ )draftsman (.+)|\$\(draftsman ([^)]+)")
_END: Final = re.compile(r"[&|;<>]+|2>+")
"""A word that ends a command, or redirects it."""
_READER: Final = re.compile(r"No such file|does not exist|^-: invalid JSON")
"""Problems of files that only the reader has."""


def command_lines(text: str) -> Iterator[str]:
    """Yield the arguments of each call of draftsman in the shell blocks of a page."""
    for token in _MARKDOWN.parse(text):
        if token.type == "fence" and token.info in _LANGUAGES:
            for line in token.content.replace("\\\n", " ").splitlines():
                if found := _START.search(line.strip()):
                    yield found[1] or found[2]


def problem(line: str) -> str | None:
    """Return what is wrong with a command line, if anything; it is not run."""
    words = shlex.split(line, comments=True)
    words = list(itertools.takewhile(lambda word: not _END.fullmatch(word), words))
    command: click.Command = main.cli
    try:
        context = command.make_context("draftsman", words, obj=App())
        while isinstance(command, click.Group) and words:
            words = [*context._protected_args, *context.args]
            name, found, words = command.resolve_command(context, words)
            assert found, name
            command = found
            context = command.make_context(name, words, parent=context)
    except click.exceptions.Exit:
        return None  # of --help
    except (click.UsageError, UsageError) as error:
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        return None if _READER.search(text) else text
    return None
