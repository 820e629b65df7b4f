"""Safe removal of folders that programs of a run could write to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
import sys
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from draftsman.jobs.runs.service.claim import Claim

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


# Cleanup of the clones of killed workers.


NAME: Final = re.compile(r"D-(\d{1,18})\.(\d{1,9})-([0-9a-f]{12})(?:-[a-z]{1,20})?")
"""A folder of a run: job, run, tag, and the purpose of a clone besides that of the agent."""


def clone_tag(job_id: UUID) -> str:
    """Return a suffix of the job's id: databases that share a data folder repeat job numbers."""
    return job_id.hex[-12:]


async def remove_stale_clones(data_dir: Path, claim: Claim) -> int:
    """Delete the folders of finished runs of this database; return their number.

    Folders of other databases, and other folders, stay.
    """
    folders = {}
    for folder in (data_dir / "runs").glob("D-*"):
        if match := NAME.fullmatch(folder.name):
            folders[folder] = (int(match[1]), int(match[2]), match[3])
    if not folders:
        return 0
    jobs = {
        (number, clone_tag(id)): run
        for number, id, run in await claim.open_runs(sorted({key[0] for key in folders.values()}))
    }
    stale = [
        folder
        for folder, (number, run, tag) in folders.items()
        if (number, tag) in jobs and jobs[number, tag] != run
    ]
    for folder in stale:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(remove_tree, folder)
    return len(stale)
