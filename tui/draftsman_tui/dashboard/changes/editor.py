"""The person's editor, at a line of a file in the local repository."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from draftsman.agent_runs.changes.user_repository import UserRepository
from draftsman.errors import Refused, UsageError

WINDOWED: Final = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
"""Editors with a window of their own, which take `--goto FILE:LINE`."""
COLON: Final = frozenset({"hx", "helix", "subl", "zed"})
"""Editors that take `FILE:LINE`; others take `+LINE FILE`."""


def editor_command(environment: Mapping[str, str], file: Path, line: int) -> list[str]:
    """Return the command that opens a file at a line; raises Refused without an editor."""
    text = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Refused(f"$VISUAL or $EDITOR cannot be read: {error}") from None
    if not words:
        raise Refused("no editor; set $VISUAL or $EDITOR, for example: export EDITOR=vi")
    name = Path(words[0]).name
    if name in WINDOWED:
        return [*words, "--goto", f"{file}:{line}"]
    return [*words, f"{file}:{line}"] if name in COLON else [*words, f"+{line}", str(file)]


def has_window(command: Sequence[str]) -> bool:
    """Return whether an editor needs no terminal."""
    return Path(command[0]).name in WINDOWED


def local_file(folder: Path, path: str, source: str | None = None) -> Path:
    """Return a file of a diff in the repository of a folder; raises Refused.

    `source` is the repository of the job, of which the folder has to be a clone.
    """
    where = f"start the dashboard in a clone of {source or 'its repository'} to edit it"
    try:
        repository = UserRepository.at(folder)
    except UsageError:
        raise Refused(f"{folder} is not in a repository; {where}") from None
    if source is not None and repository.source_of(source) == source:
        raise Refused(f"{repository.top} is not a clone of {source}; {where}")
    top = repository.top.resolve()
    file = (top / path).resolve()
    if not file.is_relative_to(top) or not file.is_file():
        raise Refused(f"no file {path} in {top}; :checkout brings the branch of the job")
    return file
