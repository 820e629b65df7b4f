"""Opening of the sandbox of a run: its mode, its folders and, as root, its user id."""

from __future__ import annotations

import asyncio
import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from draftsman.errors import Failure
from draftsman.sandbox.mode_detection import detect_mode
from draftsman.sandbox.sandbox_plan import TEMPORARY, RunSandbox
from draftsman.settings.sandbox import SandboxSettings

LOCKS: Final = Path("/run/draftsman-uids")
"""Lock files for the whole machine, since several data folders may share a range."""


async def open_run_sandbox(
    settings: SandboxSettings, *, repo: Path | None, home: Path
) -> RunSandbox:
    """Return the sandbox of a run with these folders; as root, with a user id of its own.

    Raises Failure `no_sandbox` or `no_uid`.
    """
    sandbox = await detect_mode(settings)
    run_sandbox = RunSandbox(sandbox, repo and repo.resolve(), home.resolve())
    return await asyncio.to_thread(_prepare, run_sandbox)


def _prepare(run_sandbox: RunSandbox) -> RunSandbox:
    private = run_sandbox.sandbox.has_own_paths
    folders = (
        [run_sandbox.home] if run_sandbox.repo is None else [run_sandbox.home, run_sandbox.repo]
    )
    for folder in folders if private else (*folders, run_sandbox.home / TEMPORARY):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return run_sandbox
    uid, lock = acquire_uid(run_sandbox.sandbox.settings)
    owned = replace(run_sandbox, uid=uid, lock=lock)
    try:
        for folder in folders:
            change_owner(folder, uid)
    except BaseException:
        owned.close()
        raise
    return owned


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
