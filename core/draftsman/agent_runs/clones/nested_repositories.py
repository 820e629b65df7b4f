"""Repositories that an agent made inside its clone, whose files git would not record."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class HiddenRepositories:
    """The `.git` of nested repositories, out of the tree while git records the files around them.

    The agent must be stopped meanwhile.
    """

    def __init__(self, tree: Path, aside: Path) -> None:
        """Take the tree, and a folder for what is moved, in the same file system."""
        self._tree = tree
        self._aside = aside
        self._moved: list[tuple[Path, Path]] = []

    def hide(self, names: Iterable[bytes]) -> list[bytes]:
        """Move the `.git` of these folders out of the tree; return the folders that had one."""
        self._aside.mkdir(mode=0o700, exist_ok=True)
        hidden = []
        for name in names:
            inside = self._tree / os.fsdecode(name) / ".git"
            outside = self._aside / str(len(self._moved))
            with suppress(OSError):
                inside.rename(outside)
                self._moved.append((inside, outside))
                hidden.append(name)
        return hidden

    def restore(self) -> None:
        """Move them back."""
        while self._moved:
            inside, outside = self._moved.pop()
            outside.rename(inside)
        with suppress(FileNotFoundError):
            self._aside.rmdir()


def make_readable(tree: Path, name: bytes) -> bool:
    """Let this user read a file or enter a folder of the tree; return whether that is new."""
    path = tree / os.fsdecode(name)
    with suppress(OSError):
        mode = path.lstat().st_mode
        wanted = mode | (0o700 if stat.S_ISDIR(mode) else 0o400)
        if not stat.S_ISLNK(mode) and mode != wanted:
            path.chmod(stat.S_IMODE(wanted))
            return True
    return False
