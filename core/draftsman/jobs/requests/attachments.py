"""Attachments: files that people send with a request or with a message to a job. Pure.

Their content is untrusted: it is stored, given to handlers as bytes and to agents as files that
nothing executes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from draftsman.text import STORED_SENTENCE, canonical

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import FileRef

MAX_FILES: Final = 10
"""Maximum files of a request; those after it are refused."""
MAX_BYTES: Final = 10 * 1024 * 1024
"""Maximum bytes of a file; the constraint of the table has the same."""
MAX_TOTAL: Final = 25 * 1024 * 1024
"""Maximum bytes of the files of a job, as in the view `job_files` and in `end_attachment`."""
MAX_NAME: Final = 100
PATIENCE: Final = 120.0
"""Seconds after which a run starts without a file that is still being downloaded."""
FOLDER: Final = "attachments"
"""The folder of an agent's home with the files of its job."""
_UNSAFE: Final = re.compile(r"[^\w.+@=-]+")
_DEVICES: Final = frozenset({"con", "prn", "aux", "nul"})


@dataclass(frozen=True, slots=True)
class JobAttachment:
    """An attachment of a job: a row of `job_files`."""

    job: int
    ordinal: int
    message: int | None
    """The message to the job that it came with; None: the request."""
    id: int
    name: str
    media_type: str | None
    status: str
    """`pending`, `stored` or `refused`."""
    reason: str | None = field(metadata=STORED_SENTENCE)
    size: int | None
    sha256: str | None
    created_at: datetime
    overdue: bool
    """Whether its download takes too long to wait for it."""

    @property
    def is_awaited(self) -> bool:
        """Whether a run should wait for its download."""
        return self.status == "pending" and not self.overdue


@dataclass(frozen=True, slots=True)
class PendingFile:
    """A file that this process has claimed for its download."""

    id: int
    attempt: int
    reference: dict[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """An attachment with its content, as a handler gets it."""

    name: str
    """A safe file name, unique in its job."""
    media_type: str | None
    """As the sender's program says; do not trust it."""
    data: bytes | None
    """None: it was refused, or could not be downloaded in time."""
    reason: str | None = None
    """Why it has no data."""
    message: int | None = None
    """The number of the message to the job that it came with; None: the request."""


def rows_of(refs: Sequence[FileRef]) -> list[dict[str, Any]]:
    """Return the rows of the files, each once, with safe names; those over a limit say so."""
    rows = []
    total = 0
    once: dict[str, FileRef] = {}
    for ref in refs:
        once.setdefault(canonical(ref.reference), ref)
    for number, ref in enumerate(once.values(), 1):
        reason = ref.reason or _problem(ref, number, total)
        total += 0 if reason else ref.size or 0
        row = {"reference": ref.reference, "name": safe_name(ref.name), "reason": reason}
        rows.append(row | {"media_type": ref.media_type})
    return rows


def _problem(ref: FileRef, number: int, total: int) -> str | None:
    if number > MAX_FILES:
        return f"a request has at most {MAX_FILES} files"
    if (ref.size or 0) > MAX_BYTES:
        return f"it has {ref.size:,} bytes; a file has at most {MAX_BYTES:,}"
    if total + (ref.size or 0) > MAX_TOTAL:
        return f"the files of a job have at most {MAX_TOTAL:,} bytes"
    return None


def safe_name(name: str) -> str:
    """Return a file name without folders, control characters, spaces and leading dots."""
    name = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    path = PurePosixPath(_UNSAFE.sub("_", name).strip("._-") or "file")
    stem = path.stem.rstrip("._-")
    suffix = path.suffix[:20]
    if stem.casefold() in _DEVICES:
        stem = f"{stem}_"
    while len(f"{stem}{suffix}".encode()) > MAX_NAME:
        stem = stem[:-1]
    return f"{stem or 'file'}{suffix}"


def unique_names(attachments: Sequence[JobAttachment]) -> dict[int, str]:
    """Return the file name of each attachment by its ordinal: a repeated name has a number."""
    names: dict[int, str] = {}
    used: set[str] = set()
    for item in attachments:
        name = item.name
        while name.casefold() in used:  # another file may have the name with the number
            name = f"{item.ordinal}-{name}"
        used.add(name.casefold())
        names[item.ordinal] = name
    return names
