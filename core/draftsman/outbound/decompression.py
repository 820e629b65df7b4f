"""An answer's bytes, unpacked a piece at a time, and no more of them than was agreed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from draftsman.errors import Failure

PIECE: Final = 64 * 1024
"""Bytes that are unpacked at once."""
MOST_RATIO: Final = 100
"""How many times its size an answer may unpack to, once it has unpacked to FREE."""
FREE: Final = 1024 * 1024
"""Bytes up to which nobody asks how well they were packed."""
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_RAW: Final = -15


class Decompressor:
    """Takes an answer's chunks and gives its bytes; raises Failure beyond `most` of them."""

    def __init__(self, encoding: str, most: int) -> None:
        self.known = encoding in _WINDOWS or encoding in {"", "identity"}
        """Whether the encoding is one that is unpacked; another passes as it is."""
        self._window = _WINDOWS.get(encoding)
        self._stream = None if self._window is None else zlib.decompressobj(self._window)
        self._most = most
        self._packed = 0
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what this chunk becomes."""
        self._packed += len(chunk)
        for piece in self._unpack(chunk) if self._stream is not None else (chunk,):
            self._size += len(piece)
            if self._size > self._most:
                text = f"the answer is over {self._most:,} bytes (http.max_body)"
                raise Failure(text, origin="http", code="body_too_large")
            if self._size > FREE and self._size > self._packed * MOST_RATIO:
                text = f"the answer unpacks to over {MOST_RATIO} times its size; it was not read on"
                raise Failure(text, origin="http", code="decompression_bomb")
            if piece:
                yield piece

    def end(self) -> None:
        """Raise Failure when the packed stream is not over."""
        if self._stream is not None and self._packed and not self._stream.eof:
            raise _broken("it ends too early")

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        piece = b""
        while (chunk or len(piece) == PIECE) and self._stream is not None:
            if self._stream.eof and chunk:  # another member of the same file
                self._stream = zlib.decompressobj(self._window or 0)
            piece = self._piece(chunk)
            chunk = self._stream.unconsumed_tail or self._stream.unused_data
            yield piece

    def _piece(self, chunk: bytes) -> bytes:
        if self._stream is None:
            return chunk
        try:
            return self._stream.decompress(chunk, PIECE)
        except zlib.error as error:
            if self._window == 15 and self._packed == len(chunk):  # deflate without its header
                self._window, self._stream = _RAW, zlib.decompressobj(_RAW)
                return self._piece(chunk)
            raise _broken(str(error)) from None


def _broken(why: str) -> Failure:
    text = f"the answer cannot be unpacked: {why}"
    return Failure(text, origin="http", code="content_encoding")
