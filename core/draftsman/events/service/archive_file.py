r"""The archive file of a month of events.

A gzip stream of three parts: a header line of JSON, the events as lines of COPY in commit order,
and a line `\.` with their count and SHA-256. No line of COPY starts with `\.`.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any, Final

from draftsman.errors import Refused

KIND: Final = "draftsman events"
VERSION: Final = 1
BLOCK: Final = 1024 * 1024
"""Bytes read and written at once."""
STALE_AFTER: Final = 86_400.0
"""Seconds after which an unfinished file counts as abandoned."""


@dataclass(frozen=True, slots=True)
class ArchiveContent:
    """The month, number of events and SHA-256 of an archive."""

    month: date
    events: int
    sha256: str


class ArchiveWriter:
    """Writes an archive to a temporary file, which gets its final name when it is complete."""

    def __init__(self, folder: Path, month: date) -> None:
        self._folder = folder
        self._month = month
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_abandoned(folder)
        fd, name = tempfile.mkstemp(".part", f".{_stem(month)}-", folder)
        self._part = Path(name)
        self._raw: IO[bytes] = os.fdopen(fd, "wb")
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0)
        self._hash = hashlib.sha256()
        self._events = 0
        self._write_json({"kind": KIND, "v": VERSION, "month": month.isoformat()})

    def write(self, lines: bytes) -> None:
        """Append whole lines of COPY."""
        self._hash.update(lines)
        self._events += lines.count(b"\n")
        self._file.write(lines)

    def finish(self) -> tuple[Path, ArchiveContent]:
        """Flush to disk and rename by content; return the path and the content."""
        content = ArchiveContent(self._month, self._events, self._hash.hexdigest())
        self._write_json({"events": content.events, "sha256": content.sha256}, "\\.")
        self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        # Two databases may share the folder: the checksum keeps their files apart.
        path = self._folder / f"{_stem(self._month)}-{content.sha256[:16]}.gz"
        self._part.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return path, content

    def discard(self) -> None:
        """Delete an unfinished file; no effect after `finish`."""
        with contextlib.suppress(OSError):
            self._raw.close()
        with contextlib.suppress(OSError):
            self._part.unlink()

    def _write_json(self, data: dict[str, Any], before: str = "") -> None:
        self._file.write(f"{before}{json.dumps(data)}\n".encode())


def check_archive(path: Path) -> ArchiveContent:
    """Verify an archive and return its content. Raises Refused."""
    digest, events = hashlib.sha256(), 0
    try:
        with _open(path) as file:
            month = _month(json.loads(file.readline()))
            for line in file:
                if line.startswith(b"\\."):
                    trailer = json.loads(line[2:])
                    break
                digest.update(line)
                events += 1
            else:
                raise ValueError("the end is missing")
            if file.read(1):
                raise ValueError("unexpected data after the end")
        if (trailer["events"], trailer["sha256"]) != (events, digest.hexdigest()):
            raise ValueError("the checksum does not match")
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise Refused(f"{path} is not a valid event archive: {error}") from None
    return ArchiveContent(month, events, digest.hexdigest())


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the lines of a verified archive in blocks."""
    with _open(path) as file:
        file.readline()
        while lines := file.readlines(BLOCK):
            if lines[-1].startswith(b"\\."):
                yield b"".join(lines[:-1])
                return
            yield b"".join(lines)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(path, "rb") as file:
            yield file
    except gzip.BadGzipFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None


def _month(head: Any) -> date:
    if (head["kind"], head["v"]) != (KIND, VERSION):
        raise ValueError(f"unsupported kind {head['kind']!r}, version {head['v']!r}")
    return date.fromisoformat(head["month"])


def _stem(month: date) -> str:
    return f"events-{month:%Y-%m}"


def _delete_abandoned(folder: Path) -> None:
    """Delete the files of writers that were killed."""
    for part in folder.glob(".events-*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > STALE_AFTER:
                part.unlink()
