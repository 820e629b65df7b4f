"""The channel `log`: a file with one JSON line per message, identified by its marker."""

from __future__ import annotations

import asyncio
import base64
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from draftsman.channels import LOG
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import File, Message, Receipt, SendResult, Unconfirmed
from draftsman.deliveries.documents.json import message_json
from draftsman.errors import Failure

BLOCK: Final = 65_536
"""Bytes per read, from the end of the file."""


class LogChannel(Channel):
    """Appends to a file that other processes also append to, and that may be rotated.

    A line that a crash cut off is terminated before the next line is written.
    """

    name = LOG

    def __init__(self, path: Path) -> None:
        self._path = path

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the file."""
        return str(self.name)

    async def send(self, message: Message) -> SendResult:
        """Append the message."""
        return await self._append(message, {})

    async def edit(self, message: Message) -> SendResult:
        """Append the new text of the line that `edits` names."""
        return await self._append(message, {})

    async def upload(self, message: Message, file: File) -> SendResult:
        """Append the file as base64."""
        return await self._append(message, {"content": base64.b64encode(file.data).decode()})

    async def find(self, message: Message) -> SendResult | None:
        """Search for the line with this marker, from the end."""
        try:
            exists = await asyncio.to_thread(self._has, message.marker)
        except OSError as error:
            return _failure(error)
        return Receipt(message.edits or message.marker) if exists else None

    async def _append(self, message: Message, extra: dict[str, Any]) -> SendResult:
        fields = {"id": message.marker, **message_json(message), **extra}
        line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            complete = await asyncio.to_thread(self._write, line)
        except OSError as error:
            return _failure(error)
        return Receipt(message.edits or message.marker) if complete else Unconfirmed("disk full")

    def _write(self, line: bytes) -> bool:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # without O_NONBLOCK, opening a named pipe without a reader would block
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        file = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = os.lseek(file, 0, os.SEEK_END)
            torn = end > 0 and os.pread(file, 1, end - 1) != b"\n"
            if torn:
                os.write(file, b"\n")
            complete = os.write(file, line) == len(line)
            os.fsync(file)
            return complete
        finally:
            os.close(file)

    def _has(self, marker: str) -> bool:
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        try:
            return any(_marker(line) == marker for line in _backwards(file))
        finally:
            os.close(file)


def _backwards(file: int) -> Iterator[bytes]:
    """Yield the lines of a file from last to first."""
    position = os.lseek(file, 0, os.SEEK_END)
    first = b""
    while position > 0:
        start = max(0, position - BLOCK)
        first, *lines = (os.pread(file, position - start, start) + first).split(b"\n")
        yield from reversed(lines)
        position = start
    yield first


def _marker(line: bytes) -> str | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document.get("id") if isinstance(document, dict) else None


def _failure(error: OSError) -> Failure:
    code = errno.errorcode.get(error.errno or 0)
    return Failure(f"{error.filename or 'log file'}: {error.strerror}", origin="os", code=code)
