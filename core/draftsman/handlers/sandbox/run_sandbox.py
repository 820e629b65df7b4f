"""The confinement of one run: what its programs see, may do, and are called."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from draftsman.handlers.sandbox import bwrap
from draftsman.handlers.sandbox.mode_detection import SandboxMode, detect_mode
from draftsman.handlers.sandbox.uid_pool import acquire_uid, change_owner
from draftsman.settings import SandboxSettings

MEGABYTE: Final = 1 << 20
TEMPORARY: Final = ".tmp"
"""Folder in the home for temporary files where /tmp is not private."""
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
SHARED_DEVICES: Final = ("tty", "ptmx", "pts", "shm")
"""Terminals and shared memory, which only a user of its own does not share with the worker's."""
LANDLOCK_PATHS: Final = ("/etc/passwd", "/etc/group", "/proc", "/sys/devices/system/cpu")
"""What programs read besides what bwrap makes anew."""


@dataclass(frozen=True, slots=True)
class RunSandbox:
    """The confinement of a run's programs. Make it with `open_box`; `close` it in the end."""

    sandbox: SandboxMode
    repo: Path | None
    home: Path
    uid: int | None = None
    """User id of the programs outside; None: the worker's own."""
    lock: int | None = None

    def sandbox_path(self, path: Path) -> str:
        """Return the path as the programs see it."""
        if self.sandbox.mode == "bwrap":
            for outer, inner in ((self.home, bwrap.HOME), (self.repo, bwrap.REPO)):
                if outer is not None and path.is_relative_to(outer):
                    return str(Path(inner, path.relative_to(outer)))
        return str(path)

    def host_path(self, path: str) -> str:
        """Return the path on this machine of one that a program named."""
        if self.sandbox.mode == "bwrap":
            for outer, inner in ((self.home, bwrap.HOME), (self.repo, bwrap.REPO)):
                if outer is not None and Path(os.path.normpath(path)).is_relative_to(inner):
                    return str(outer / Path(os.path.normpath(path)).relative_to(inner))
        return path

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with the folders that hold in the box."""
        private = self.sandbox.mode == "bwrap"
        temporary = "/tmp" if private else str(self.home / TEMPORARY)  # noqa: S108 - its own
        changed = {"HOME": self.sandbox_path(self.home), "TMPDIR": temporary}
        return {**variables, **changed}

    def plan(self, command: Sequence[str], cwd: Path, network: bool) -> dict[str, Any]:
        """Return what the guard carries out; see `draftsman.handlers.sandbox.confinement`.

        Files that the command names by their whole path can be read, but where a link of the run's
        own folders leads is not followed.
        """
        settings, mode = self.sandbox.settings, self.sandbox.mode
        own = [self.home] if self.repo is None else [self.home, self.repo]
        named = [part for part in command if not any(Path(part).is_relative_to(at) for at in own)]
        read = list(bwrap.readable(settings.read_only, named, network))
        plan: dict[str, Any] = {
            "mode": mode,
            "uid": self.uid,
            "network": network,
            "chdir": self.sandbox_path(cwd),
            "memory": settings.memory_mb * MEGABYTE,
            "file_size": settings.file_size_mb * MEGABYTE,
            "processes": settings.processes,
            "tmp": settings.file_size_mb * MEGABYTE,
            "keep": [] if self.lock is None else [self.lock],
        }
        if mode == "bwrap":
            mounts = bwrap.mounts(read, self.repo, self.home, own)
            return plan | {"bwrap": self.sandbox.program, "mounts": mounts}
        devices = DEVICES if self.uid is None else DEVICES + SHARED_DEVICES
        write = [*(f"/dev/{name}" for name in devices), *(str(folder) for folder in own)]
        return plan | {"read": [*read, *LANDLOCK_PATHS], "write": write}

    def as_event(self, network: bool) -> dict[str, Any]:
        """Return what a run's events tell of it."""
        uid = os.geteuid() if self.uid is None else self.uid
        return {"mode": self.sandbox.mode, "network": network, "uid": uid}

    def close(self) -> None:
        """Let go of the user id."""
        if self.lock is not None:
            with contextlib.suppress(OSError):
                os.close(self.lock)


async def open_run_sandbox(
    settings: SandboxSettings, *, repo: Path | None, home: Path
) -> RunSandbox:
    """Return the confinement of a run with these folders; as root they get a user of their own.

    Raises Failure `no_sandbox` or `no_uid`.
    """
    sandbox = await detect_mode(settings)
    box = RunSandbox(sandbox, repo and repo.resolve(), home.resolve())
    return await asyncio.to_thread(_prepared, box)


def _prepared(box: RunSandbox) -> RunSandbox:
    private = box.sandbox.mode == "bwrap"
    folders = [box.home] if box.repo is None else [box.home, box.repo]
    for folder in folders if private else (*folders, box.home / TEMPORARY):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return box
    uid, lock = acquire_uid(box.sandbox.settings)
    owned = replace(box, uid=uid, lock=lock)
    try:
        for folder in folders:
            change_owner(folder, uid)
    except BaseException:
        owned.close()
        raise
    return owned
