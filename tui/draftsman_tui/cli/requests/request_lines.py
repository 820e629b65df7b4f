"""Batches of lines of a file or of stdin, read as they arrive."""

from __future__ import annotations

import asyncio
import codecs
import io
import select
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from draftsman.errors import UsageError

BATCH_LINES: Final = 1000
"""Maximum number of lines of a batch."""
BATCH_CHARACTERS: Final = 16 * 1024 * 1024
"""Maximum number of characters of a batch, which bounds memory; the last line may exceed it."""
MAX_LINE: Final = 16 * 1024 * 1024
"""Maximum number of characters of a line: a request of 1 MiB in which all are escaped has 6 MiB."""
_BLOCK: Final = 256 * 1024
_POLL: Final = 0.2
"""Seconds after which lines of a slow writer are submitted, and a canceled read ends."""


async def batches(file: str) -> AsyncIterator[list[tuple[int, str]]]:
    """Yield batches of numbered lines without blank lines; `-` reads stdin.

    A batch has the lines that are there, so that a slow writer's lines do not wait for more. Raises
    UsageError.
    """
    decode = codecs.getincrementaldecoder("utf-8")("replace" if file == "-" else "strict").decode
    lines: list[tuple[int, str]] = []
    number, size, rest = 0, 0, ""
    with _opened(file) as stream:
        ended = False
        while not ended:
            if (block := await asyncio.to_thread(_read, stream)) is None:
                if lines:
                    yield lines
                    lines, size = [], 0
                continue
            ended = not block
            try:
                text = rest + decode(block, final=ended)
            except UnicodeDecodeError:
                raise UsageError(f"{file}: not UTF-8 text; convert the file to UTF-8") from None
            *complete, rest = text.split("\n")
            if ended:
                complete.append(rest)
            for line in complete:
                number += 1
                if not line or line.isspace():
                    continue
                lines.append((number, line))
                size += len(line)
                if len(lines) == BATCH_LINES or size > BATCH_CHARACTERS:
                    yield lines
                    lines, size = [], 0
            if len(rest) > MAX_LINE:
                name = "stdin" if file == "-" else file
                raise UsageError(f"{name}:{number + 1}: longer than {MAX_LINE:,} characters")
    if lines:
        yield lines


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; use a readable file") from None


def _read(stream: Any) -> bytes | None:
    """Return the next block, b"" at the end, and None if nothing arrived for a while."""
    try:
        ready, _, _ = select.select([stream], [], [], _POLL)
    except io.UnsupportedOperation:  # not a file of the operating system
        ready = [stream]
    return stream.read1(_BLOCK) if ready else None
