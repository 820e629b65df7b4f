"""Pool of user ids for the concurrent runs of a worker that runs as root."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from draftsman.errors import Failure
from draftsman.settings import SandboxSettings

LOCKS: Final = Path("/run/draftsman-uids")
"""Lock files for the whole machine, since several data folders may share a range."""


def acquire_uid(settings: SandboxSettings, locks: Path = LOCKS) -> tuple[int, int]:
    """Return a free user id and the descriptor of its lock; raises Failure `no_uid`.

    Guards inherit the descriptor: the id is released when the last process of the run has exited.
    """
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    for uid in range(settings.first_uid, settings.first_uid + settings.uid_count):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(locks / str(uid), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return uid, lock
    text = f"all {settings.uid_count} user ids are in use; increase [sandbox] uid_count"
    raise Failure(text, origin="handler", code="no_uid", declared="TRANSIENT_INFRA")


def change_owner(folder: Path, uid: int) -> None:
    """Change the owner of a folder and all its content; links are not followed."""
    folders = [os.fspath(folder)]
    os.chown(folder, uid, uid, follow_symlinks=False)
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                os.chown(entry.path, uid, uid, follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
