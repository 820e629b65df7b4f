"""HTTP/1.1 connections whose requests arrive in time.

uvicorn waits for ever for the rest of a request's head. A few thousand connections that send half
of one would fill its limit, and all others would get 503.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

ARRIVAL_TIMEOUT: Final = 10.0
"""Seconds for a whole request, head and body, from the connection or from its first byte."""
MAX_INCOMPLETE: Final = 256
"""Connections with an incomplete request; the oldest is closed for one more."""
MAX_HEAD_BYTES: Final = 32 * 1024
"""Bytes of a head."""
_waiting: Final[WeakKeyDictionary[ServerState, dict[TimedProtocol, None]]] = WeakKeyDictionary()


class TimedProtocol(H11Protocol):
    """A connection that is closed when its request does not arrive in time."""

    arrives = ARRIVAL_TIMEOUT
    incomplete = MAX_INCOMPLETE

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._others = _waiting.setdefault(self.server_state, {})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Wait for what is missing of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._begin()
        else:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._timer is not None or self.transport.is_closing():
            return
        self._timer = self.loop.call_later(self.arrives, self._late)
        self._others[self] = None
        if len(self._others) > self.incomplete:
            next(iter(self._others))._late()

    def _end(self) -> None:
        self._others.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._end()
        self.transport.abort()
