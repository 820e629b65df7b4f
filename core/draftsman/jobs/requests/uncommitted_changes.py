"""Uncommitted changes of a person's working tree, which a request takes along. Pure."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from typing import Any, Final, Self

from draftsman.errors import UsageError
from draftsman.formats.amounts import counted, format_size

FIELD: Final = "changes"
"""Field of the payload with the changes."""
MAX_STORED: Final = 700_000
"""Maximum characters of the packed patch: a request has at most 1 MiB."""
MAX_PATCH: Final = 25 * 1024 * 1024
"""Maximum bytes of the patch, as of that of a job."""
MAX_NAMED: Final = 5
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class UncommittedChanges:
    """A patch of git on a commit."""

    base: str
    patch: bytes
    files: int
    """Number of files that it changes."""

    @property
    def stored(self) -> dict[str, Any]:
        """The field of the payload; raises UsageError for a patch that is too large."""
        packed = base64.b64encode(zlib.compress(self.patch, 9)).decode()
        if len(packed) > MAX_STORED or len(self.patch) > MAX_PATCH:
            raise too_large(len(self.patch))
        return {"base": self.base, "files": self.files, "patch": packed}

    @classmethod
    def of(cls, payload: dict[str, Any]) -> Self | None:
        """Return the changes of a request, None without any; raises ValueError."""
        stored = payload.get(FIELD)
        if stored is None:
            return None
        try:
            base, files, packed = stored["base"], stored["files"], stored["patch"]
            unpacked = zlib.decompressobj()
            patch = unpacked.decompress(base64.b64decode(packed, validate=True), MAX_PATCH + 1)
        except (TypeError, KeyError, binascii.Error, zlib.error) as error:
            raise ValueError(f"{FIELD} of the payload: {error}") from None
        is_valid = isinstance(base, str) and _COMMIT.fullmatch(base) and isinstance(files, int)
        if not is_valid or len(patch) > MAX_PATCH or not unpacked.eof:
            raise ValueError(f"{FIELD} of the payload: not a patch of at most {MAX_PATCH:,} bytes")
        return cls(base, patch, files)


def too_large(size: int) -> UsageError:
    """Return the error for changes of so many bytes."""
    return UsageError(
        f"the uncommitted changes have {format_size(size)}; a job takes at most"
        f" {format_size(MAX_STORED)} along, compressed: commit them, or let git ignore large files"
    )


def named(paths: list[str], count: int) -> str:
    """Return the number and the first files: `7 files (a.py, b.py, … and 2 more)`."""
    first = ", ".join(paths[:MAX_NAMED])
    more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
    return f"{counted(count, 'file')} ({first}{more})"
