"""Deletes folders that a program could write to."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

FLAGS: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Delete a folder, if it is there, with closed folders and ones as deep as they may be.

    Follows no link, not even one that appears meanwhile. Inner folders move up before they go, so
    that neither the stack nor the open files grow with the depth. Raises OSError.
    """
    try:
        top = _open(str(folder), None)
    except FileNotFoundError:
        return
    try:
        left = _emptied(top, top)
        while left:
            name = left.pop()
            inner = _open(name, top)
            try:
                left += _emptied(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _emptied(folder: int, top: int) -> list[str]:
    """Delete the files of a folder and move its folders to the top; return their names there."""
    moved = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.close(_open(name, folder))
            moved.append(uuid4().hex)
            os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
        else:
            os.unlink(name, dir_fd=folder)
    return moved


def _open(name: str, parent: int | None) -> int:
    """Return a descriptor of a folder, which its owner may enter and change from now on."""
    if sys.platform != "linux":
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return os.open(name, os.O_RDONLY | FLAGS, dir_fd=parent)
    found = os.open(name, os.O_PATH | FLAGS, dir_fd=parent)
    try:
        path = Path(f"/proc/self/fd/{found}")
        path.chmod(0o700)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(found)
