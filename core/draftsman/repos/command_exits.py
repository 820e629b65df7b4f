"""Exit codes by which programs say that they could not run, so that they checked nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

ANY: Final = (64, 78)
"""A wrong use and an invalid configuration, in `sysexits.h`."""
ERROR_EXITS: Final[Mapping[str, tuple[int, ...]]] = {
    "actionlint": (2, 3),
    "basedpyright": (2, 3, 4),
    "eslint": (2,),
    "golangci-lint": (3, 4, 6),
    "markdownlint": (3, 4),
    "markdownlint-cli2": (2,),
    "php-cs-fixer": (16, 32),
    "phpcs": (16,),
    "pylint": (32,),
    "pyright": (2, 3, 4),
    "pytest": (3, 4),
    "rubocop": (2,),
    "ruff check": (2,),
    "shellcheck": (3, 4),
    "tflint": (1,),
    "ty": (2, 101),
    "vulture": (2,),
    "yamllint": (255,),
}
"""Codes by the program, or by the program and its subcommand, besides ANY.

Programs are missing that use a code for findings, too, such as 2 of mypy, make and tsc.
"""
LAUNCHERS: Final = frozenset(
    (
        "bundle",
        "bunx",
        "hatch",
        "npx",
        "pdm",
        "pipenv",
        "pnpm",
        "poetry",
        "rye",
        "uv",
        "uvx",
        "yarn",
    )
)
"""Programs whose arguments are the command that they start."""
LAUNCHER_WORDS: Final = frozenset(("dlx", "exec", "run", "tool", "x"))
MODULE: Final = re.compile(r"(?:python|pypy)[\d.]*\Z")


def error_exits(command: Sequence[str]) -> tuple[int, ...]:
    """Return the exit codes by which a command says that it could not run."""
    words = _words(command)
    program = next(words, "")
    subcommand = f"{program} {next(words, '')}"
    return (*ANY, *(ERROR_EXITS.get(program) or ERROR_EXITS.get(subcommand) or ()))


def _words(command: Sequence[str]) -> Iterator[str]:
    """Yield the program that is started in the end, and its arguments that are no options."""
    plain = (word for word in command if not word.startswith("-"))
    program = next(plain, "")
    name = PurePosixPath(program).name
    if MODULE.match(name) or program == "{python}":
        rest = command[command.index("-m") + 1 :] if "-m" in command else ()
        yield from (word for word in rest if not word.startswith("-"))
        return
    if name in LAUNCHERS:
        name = next((word for word in plain if word not in LAUNCHER_WORDS), "")
    yield name
    yield from plain
