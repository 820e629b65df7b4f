"""Bounded, incremental decompression of response bodies."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from draftsman.errors import Failure

CHUNK_SIZE: Final = 64 * 1024
"""Maximum bytes of a decompressed chunk."""
MAX_RATIO: Final = 100
"""Maximum compression ratio of a body above RATIO_THRESHOLD."""
RATIO_THRESHOLD: Final = 1024 * 1024
"""Decompressed bytes below which the ratio is not checked."""
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_RAW: Final = -15


class Decompressor:
    """Decompresses the chunks of a body; raises Failure above `limit` bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.known = encoding in _WINDOWS or encoding in {"", "identity"}
        """Whether the encoding is supported; others are passed through."""
        self._window = _WINDOWS.get(encoding)
        self._stream = None if self._window is None else zlib.decompressobj(self._window)
        self._limit = limit
        self._packed = 0
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of a chunk."""
        self._packed += len(chunk)
        for piece in self._unpack(chunk) if self._stream is not None else (chunk,):
            self._size += len(piece)
            if self._size > self._limit:
                text = f"the response is larger than {self._limit:,} bytes (http.max_body)"
                raise Failure(text, origin="http", code="body_too_large")
            if self._size > RATIO_THRESHOLD and self._size > self._packed * MAX_RATIO:
                text = f"the response decompresses to over {MAX_RATIO} times its size"
                raise Failure(text, origin="http", code="decompression_bomb")
            if piece:
                yield piece

    def end(self) -> None:
        """Raise Failure if the compressed stream is incomplete."""
        if self._stream is not None and self._packed and not self._stream.eof:
            raise _invalid("unexpected end of data")

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        piece = b""
        while (chunk or len(piece) == CHUNK_SIZE) and self._stream is not None:
            if self._stream.eof and chunk:  # next member of the file
                self._stream = zlib.decompressobj(self._window or 0)
            piece = self._piece(chunk)
            chunk = self._stream.unconsumed_tail or self._stream.unused_data
            yield piece

    def _piece(self, chunk: bytes) -> bytes:
        if self._stream is None:
            return chunk
        try:
            return self._stream.decompress(chunk, CHUNK_SIZE)
        except zlib.error as error:
            if self._window == 15 and self._packed == len(
                chunk
            ):  # raw deflate without a zlib header
                self._window, self._stream = _RAW, zlib.decompressobj(_RAW)
                return self._piece(chunk)
            raise _invalid(str(error)) from None


def _invalid(reason: str) -> Failure:
    text = f"the response cannot be decompressed: {reason}"
    return Failure(text, origin="http", code="content_encoding")
