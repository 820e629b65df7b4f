"""Reads a file that an agent names, and no other."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from draftsman.errors import Failure

MAX_ARTIFACT: Final = 25 * 1024 * 1024
"""Bytes of one artifact."""


def read_artifact(roots: tuple[Path, ...], path: str) -> bytes:
    """Return the file's content; a relative path is below the first root.

    Raises Failure `artifact`: it leads out of the roots, is no plain file, or is too large.
    """
    full = Path(os.path.normpath(roots[0] / path))
    root = next((root for root in roots if full.is_relative_to(root)), None)
    if root is None:
        raise _no_artifact(path, "is not in the workspace, and not below $HOME")
    try:
        with open(_open_beneath(root, full.relative_to(root)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_ARTIFACT:
                raise _no_artifact(path, f"is no plain file of at most {MAX_ARTIFACT:,} bytes")
            return file.read(MAX_ARTIFACT)
    except (OSError, ValueError) as error:
        raise _no_artifact(path, getattr(error, "strerror", None) or str(error)) from None


def _open_beneath(root: Path, relative: Path) -> int:
    """Open a file without following a link on the way: an agent could point one anywhere."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    at = os.open(root, flags | os.O_DIRECTORY)
    for part in relative.parts:
        try:
            inner = os.open(part, flags, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def _no_artifact(path: str, why: str) -> Failure:
    return Failure(f"artifact {path[:200]!r} {why}", origin="agent", code="artifact")
