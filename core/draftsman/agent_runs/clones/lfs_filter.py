"""The filter of Git LFS that the worker's git starts: pointers in commits, contents in clones.

`lfs_filter.py STORE` speaks the protocol of long running filters of gitattributes(5). It is a
program of the standard library alone, since git starts it again for each of its commands.

- a pointer: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
- the protocol: Documentation/gitprotocol-common and technical/long-running-process-protocol of git
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

MAX_POINTER = 1024
"""Maximum bytes of a pointer."""
MAX_PACKET = 65_516
"""Maximum bytes of the data of a packet."""
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]{1,200}\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,17})\n"
)


class LfsObject(NamedTuple):
    """The content of a file: its SHA-256 and its bytes."""

    oid: str
    size: int

    @property
    def pointer(self) -> bytes:
        """The file that commits have instead."""
        text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.oid}\n"
        return f"{text}size {self.size}\n".encode()

    def path(self, store: Path) -> Path:
        """Return the file of a store, whose layout is that of Git LFS."""
        return store / "objects" / self.oid[:2] / self.oid[2:4] / self.oid


def parse_pointer(data: bytes) -> LfsObject | None:
    """Return the object of a pointer; None for another content."""
    match = _POINTER.fullmatch(data) if len(data) <= MAX_POINTER else None
    return None if match is None else LfsObject(match[1].decode(), int(match[2]))


class ContentWriter:
    """Writes a content to a store; call `close` at its end."""

    def __init__(self, store: Path) -> None:
        self._store = store
        (store / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=store / "tmp")
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)
        self._digest = hashlib.sha256()
        self._size = 0
        self.start = b""
        """The content, or the beginning of one that is longer than a pointer."""

    def write(self, chunk: bytes) -> None:
        """Add a part."""
        self._digest.update(chunk)
        self._size += len(chunk)
        self.start += chunk[: MAX_POINTER + 1 - len(self.start)]
        self._file.write(chunk)

    def close(self) -> LfsObject:
        """Return the object; nothing at all, and a pointer, are not stored."""
        self._file.close()
        content = LfsObject(self._digest.hexdigest(), self._size)
        path = content.path(self._store)
        if not self.start or parse_pointer(self.start) is not None or path.is_file():
            self._path.unlink()
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.replace(path)
        return content


def store_content(store: Path, chunks: Iterable[bytes]) -> tuple[LfsObject, bytes]:
    """Write a content to a store; return its object, and its beginning."""
    writer = ContentWriter(store)
    for chunk in chunks:
        writer.write(chunk)
    return writer.close(), writer.start


def _packets(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the packets up to a flush, or to the end."""
    while head := stream.read(4):
        size = int(head, 16)
        if size == 0:
            return
        yield stream.read(size - 4)


def _send(stream: BinaryIO, *packets: bytes) -> None:
    """Write packets, and a flush after them."""
    for packet in packets:
        stream.write(b"%04x" % (len(packet) + 4) + packet)
    stream.write(b"0000")


def _send_content(stream: BinaryIO, content: BinaryIO | bytes) -> None:
    """Write a content, and that it is complete."""
    _send(stream, b"status=success\n")
    if isinstance(content, bytes):
        _send(stream, *((content,) if content else ()))
    else:
        while chunk := content.read(MAX_PACKET):
            stream.write(b"%04x" % (len(chunk) + 4) + chunk)
        stream.write(b"0000")
    _send(stream)


def _smudge(stream: BinaryIO, store: Path, pointer: bytes) -> None:
    """Write the content of a pointer; the pointer itself if the store does not have it."""
    found = parse_pointer(pointer)
    path = None if found is None else found.path(store)
    if path is None or not path.is_file():
        _send_content(stream, pointer)
        return
    with path.open("rb") as file:
        _send_content(stream, file)


def serve(store: Path, requests: BinaryIO, responses: BinaryIO) -> None:
    """Convert files until git ends."""
    list(_packets(requests))
    _send(responses, b"git-filter-server\n", b"version=2\n")
    responses.flush()
    list(_packets(requests))
    _send(responses, b"capability=clean\n", b"capability=smudge\n")
    responses.flush()
    while fields := list(_packets(requests)):
        if b"command=clean\n" in fields:
            content, start = store_content(store, _packets(requests))
            kept = not start or parse_pointer(start) is not None
            _send_content(responses, start if kept else content.pointer)
        else:
            _smudge(responses, store, b"".join(_packets(requests)))
        responses.flush()


if __name__ == "__main__":
    os.umask(0o077)
    serve(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
