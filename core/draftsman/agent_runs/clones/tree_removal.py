"""Safe removal of folders that programs of a run could write to."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

FLAGS: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Delete a folder, if it exists, with unreadable and deeply nested folders.

    Follows no links, even if they are created meanwhile. Nested folders are moved to the top first,
    so that the stack and the number of open files do not grow with the depth. Raises OSError.
    """
    try:
        top = _open_folder(str(folder), None)
    except FileNotFoundError:
        return
    try:
        names = _empty(top, top)
        while names:
            name = names.pop()
            child = _open_folder(name, top)
            try:
                names += _empty(child, top)
            finally:
                os.close(child)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _empty(folder: int, top: int) -> list[str]:
    """Delete the files of a folder and move its folders to the top; return their names there."""
    moved = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.close(_open_folder(name, folder))
            moved.append(uuid4().hex)
            os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
        else:
            os.unlink(name, dir_fd=folder)
    return moved


def _open_folder(name: str, parent: int | None) -> int:
    """Return a descriptor of a folder, with full access for its owner."""
    if sys.platform != "linux":
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return os.open(name, os.O_RDONLY | FLAGS, dir_fd=parent)
    descriptor = os.open(name, os.O_PATH | FLAGS, dir_fd=parent)
    try:
        path = Path(f"/proc/self/fd/{descriptor}")
        path.chmod(0o700)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(descriptor)
