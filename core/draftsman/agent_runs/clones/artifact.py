"""Safe reading of a file at a path from an agent."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from draftsman.errors import Failure

MAX_ARTIFACT: Final = 25 * 1024 * 1024
"""Maximum bytes of an artifact."""


def read_artifact(roots: tuple[Path, ...], path: str) -> bytes:
    """Return the file's content; a relative path is below the first root.

    Raises Failure `artifact` for a path outside the roots, and a file that is not regular or too
    large.
    """
    absolute = Path(os.path.normpath(roots[0] / path))
    root = next((root for root in roots if absolute.is_relative_to(root)), None)
    if root is None:
        raise _artifact_failure(path, "is outside the workspace and $HOME")
    try:
        with open(_open_beneath(root, absolute.relative_to(root)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ARTIFACT:
                raise _artifact_failure(
                    path, f"is not a regular file of at most {MAX_ARTIFACT:,} bytes"
                )
            return file.read(MAX_ARTIFACT)
    except (OSError, ValueError) as error:
        raise _artifact_failure(path, getattr(error, "strerror", None) or str(error)) from None


def _open_beneath(root: Path, relative: Path) -> int:
    """Open a file without following links: an agent could point a link anywhere."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(root, flags | os.O_DIRECTORY)
    for part in relative.parts:
        try:
            child = os.open(part, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _artifact_failure(path: str, problem: str) -> Failure:
    return Failure(f"artifact {path[:200]!r} {problem}", origin="agent", code="artifact")
