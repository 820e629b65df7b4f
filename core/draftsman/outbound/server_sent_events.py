"""Parser of server-sent events (WHATWG HTML, 9.2)."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from draftsman.errors import Failure

MAX_EVENT: Final = 4 * 1024 * 1024
"""Maximum characters of an event."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """An event; the default `name` is `message`."""

    name: str
    data: str


async def parse_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yield the complete events of a stream; raises Failure."""
    name = ""
    size = 0
    data: list[str] = []
    async for line in _lines(chunks):
        size += len(line)
        if size > MAX_EVENT:
            raise _too_large()
        if not line:
            if data:
                yield ServerSentEvent(name or "message", "\n".join(data))
            name = ""
            data = []
            size = 0
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    pieces: list[str] = []
    size = 0
    after_cr = False
    async for chunk in chunks:
        if not (text := decoder.decode(chunk)):
            continue
        if after_cr:
            text = text.removeprefix("\n")
        after_cr = text.endswith("\r") or (after_cr and not text)
        *complete, beginning = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in complete:
            yield "".join((*pieces, line))
            pieces = []
            size = 0
        pieces.append(beginning)
        size += len(beginning)
        if size > MAX_EVENT:
            raise _too_large()


def _too_large() -> Failure:
    text = f"an event of the stream has more than {MAX_EVENT:,} characters"
    return Failure(text, origin="http", code="body_too_large")
