r"""The file that holds a month of the trail.

A gzip stream of three parts: one line of JSON that says what it is, the events as lines of COPY, in
the order of the feed, and one line `\.` with their count and SHA-256. No line of COPY begins so.
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
"""Bytes that are written and read at once."""
STALE_AFTER: Final = 86_400.0
"""Seconds after which an unfinished file was left by somebody who died."""


@dataclass(frozen=True, slots=True)
class ArchiveContent:
    """What an archive holds: so many events of a month; the SHA-256 is that of their lines."""

    month: date
    events: int
    sha256: str


class ArchiveWriter:
    """Writes an archive under a name of its own; nobody sees it before it is whole."""

    def __init__(self, folder: Path, month: date) -> None:
        self._folder = folder
        self._month = month
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(folder)
        fd, name = tempfile.mkstemp(".part", f".{_stem(month)}-", folder)
        self._part = Path(name)
        self._raw: IO[bytes] = os.fdopen(fd, "wb")
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0)
        self._hash = hashlib.sha256()
        self._events = 0
        self._say({"kind": KIND, "v": VERSION, "month": month.isoformat()})

    def write(self, lines: bytes) -> None:
        """Add whole lines of COPY."""
        self._hash.update(lines)
        self._events += lines.count(b"\n")
        self._file.write(lines)

    def finish(self) -> tuple[Path, ArchiveContent]:
        """Bring it to the disk, then to its name, which its content decides; return both."""
        found = ArchiveContent(self._month, self._events, self._hash.hexdigest())
        self._say({"events": found.events, "sha256": found.sha256}, "\\.")
        self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        # Of two databases with one folder, neither replaces an archive of the other.
        path = self._folder / f"{_stem(self._month)}-{found.sha256[:16]}.gz"
        self._part.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return path, found

    def discard(self) -> None:
        """Remove what is unfinished; harmless after `finish`."""
        with contextlib.suppress(OSError):
            self._raw.close()
        with contextlib.suppress(OSError):
            self._part.unlink()

    def _say(self, data: dict[str, Any], before: str = "") -> None:
        self._file.write(f"{before}{json.dumps(data)}\n".encode())


def check_archive(path: Path) -> ArchiveContent:
    """Read a whole archive; return what it holds. Raises Refused where a byte of it is wrong."""
    digest, events = hashlib.sha256(), 0
    try:
        with _opened(path) as file:
            month = _month(json.loads(file.readline()))
            for line in file:
                if line.startswith(b"\\."):
                    last = json.loads(line[2:])
                    break
                digest.update(line)
                events += 1
            else:
                raise ValueError("its end is missing")
            if file.read(1):
                raise ValueError("something follows its end")
        if (last["events"], last["sha256"]) != (events, digest.hexdigest()):
            raise ValueError("its events are not those that were archived")
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise Refused(f"{path} is no whole archive of events: {error}") from None
    return ArchiveContent(month, events, digest.hexdigest())


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the lines of an archive that was checked, many at once."""
    with _opened(path) as file:
        file.readline()
        while lines := file.readlines(BLOCK):
            if lines[-1].startswith(b"\\."):
                yield b"".join(lines[:-1])
                return
            yield b"".join(lines)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(path, "rb") as file:
            yield file
    except gzip.BadGzipFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None


def _month(head: Any) -> date:
    if (head["kind"], head["v"]) != (KIND, VERSION):
        raise ValueError(f"it is of kind {head['kind']!r}, version {head['v']!r}")
    return date.fromisoformat(head["month"])


def _stem(month: date) -> str:
    return f"events-{month:%Y-%m}"


def _clear(folder: Path) -> None:
    """Remove what writers left that were killed."""
    for part in folder.glob(".events-*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > STALE_AFTER:
                part.unlink()
